// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "tests/model/search.h"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <unordered_map>

#include "tests/model/returns.h"
#include "tests/model/world.h"

namespace sluice::scheduler::model {

const char* FindingName(Finding finding) {
  switch (finding) {
    case Finding::kInvariant:
      return "broken invariant";
    case Finding::kOverBudget:
      return "over budget";
    case Finding::kUnsafe:
      return "unsafe";
    case Finding::kConformingDenied:
      return "conforming job denied";
    case Finding::kNoWayOn:
      return "no way on";
    case Finding::kOvertaken:
      return "overtaken too often";
    case Finding::kNotAlone:
      return "measured in company";
    case Finding::kKeptAway:
      return "kept away";
    case Finding::kCopiesDiffer:
      return "copies of a state differ";
  }
  return "unknown";
}

namespace {

struct Node {
  uint32_t parent = 0;
  std::string label;
  std::vector<uint32_t> helpful_from;  // states with a step to this one that is no death
  uint32_t got_on = 0;                 // bit per client
  uint32_t away = 0;                   // in host memory; bit per client
  size_t future = 0;                   // hash of its next steps (compare_copies)
};

/// What can happen next and where it leads. The counters of a step are left out: they are for
/// people.
size_t Future(const std::vector<Step>& steps) {
  std::string text;
  for (const Step& step : steps) {
    text += step.label + (step.helps ? ":" : "!") + step.world.Key();
    for (const auto& [finding, what] : step.findings) text += FindingName(finding);
    text += '\n';
  }
  return std::hash<std::string>()(text);
}

}  // namespace

SearchResult Search(const ModelConfig& config) {
  SearchResult result;
  std::vector<Node> nodes;
  std::unordered_map<std::string, uint32_t> index;
  std::deque<std::pair<uint32_t, World>> frontier;
  std::vector<std::pair<uint32_t, size_t>> copies;
  std::vector<Passage> away;  // somebody is in host memory before and after

  auto path = [&nodes](uint32_t at) {
    std::vector<std::string> labels;
    for (; at != 0; at = nodes[at].parent) labels.push_back(nodes[at].label);
    std::string text;
    for (auto label = labels.rbegin(); label != labels.rend(); ++label) text += "\n    " + *label;
    return text;
  };
  auto find = [&result, &path](Finding finding, const std::string& text, uint32_t at) {
    if (result.counts[finding]++ == 0) result.first[finding] = text + path(at);
  };
  auto intern = [&](World&& world, uint32_t parent, const std::string& label) {
    const auto [entry, fresh] = index.emplace(world.Key(), static_cast<uint32_t>(nodes.size()));
    if (!fresh) {
      if (config.compare_copies)
        copies.emplace_back(entry->second, Future(NextSteps(config, world)));
      return entry->second;
    }
    Node node;
    node.parent = parent;
    node.label = label;
    for (JobId job = 1; job <= config.clients.size(); ++job) {
      if (GotOn(world, job)) node.got_on |= 1u << job;
    }
    for (const Job& job : world.ledger.jobs()) {
      if (job.phase == Phase::kEvicted && world.IsDue(job)) node.away |= 1u << job.id;
    }
    for (const Job& job : world.ledger.jobs()) {
      if (job.spare > 0) {
        ++result.spare_kept;
        break;
      }
    }
    nodes.push_back(std::move(node));
    frontier.emplace_back(entry->second, std::move(world));
    return entry->second;
  };

  intern(World(config), 0, "start");
  while (!frontier.empty()) {
    if (nodes.size() > config.max_states) return result;
    const auto [at, world] = std::move(frontier.front());
    frontier.pop_front();
    std::vector<Step> steps = NextSteps(config, world);
    if (config.compare_copies) nodes[at].future = Future(steps);
    for (Step& step : steps) {
      ++result.edges;
      result.denials += step.denials;
      result.evictions += step.evictions;
      result.sums_only += step.sums_only;
      result.lent += step.lent;
      const bool begins = step.begins;
      const uint32_t to = intern(std::move(step.world), at, step.label);
      if ((nodes[at].away & nodes[to].away) != 0) away.push_back({at, to, begins});
      if (step.helps) nodes[to].helpful_from.push_back(at);
      for (const auto& [finding, text] : step.findings) find(finding, text, to);
    }
  }
  result.states = nodes.size();
  result.complete = true;
  for (const auto& [at, future] : copies) {
    if (future != nodes[at].future)
      find(Finding::kCopiesDiffer, "a copy of this state goes on differently", at);
  }

  for (JobId job = 1; job <= config.clients.size(); ++job) {
    std::vector<Passage> of_job;
    for (const Passage& passage : away) {
      if ((nodes[passage.from].away & nodes[passage.to].away & 1u << job) != 0) {
        of_job.push_back(passage);
      }
    }
    const Bound bound = MostBegins(of_job);
    if (!bound.bounded) {
      find(Finding::kKeptAway, "job " + std::to_string(job) + " need not come back", bound.at);
    }
    result.begun_while_away = std::max<size_t>(result.begun_while_away, bound.begins);
  }

  // For each client: from which states can it get on? Backwards from those where it has.
  for (JobId job = 1; job <= config.clients.size(); ++job) {
    std::vector<bool> can(nodes.size(), false);
    std::deque<uint32_t> reached;
    for (uint32_t at = 0; at < nodes.size(); ++at) {
      if ((nodes[at].got_on >> job & 1u) == 0) continue;
      can[at] = true;
      reached.push_back(at);
    }
    while (!reached.empty()) {
      const uint32_t at = reached.front();
      reached.pop_front();
      for (const uint32_t from : nodes[at].helpful_from) {
        if (can[from]) continue;
        can[from] = true;
        reached.push_back(from);
      }
    }
    for (uint32_t at = 0; at < nodes.size(); ++at) {
      if (!can[at])
        find(Finding::kNoWayOn, "job " + std::to_string(job) + " never gets to its trough", at);
    }
  }
  return result;
}

}  // namespace sluice::scheduler::model
