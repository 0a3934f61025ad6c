// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "tests/model/returns.h"

#include <algorithm>
#include <unordered_map>

namespace sluice::scheduler::model {

namespace {

constexpr uint32_t kNone = ~0u;

/// Components in an order in which every step leads to the same or an earlier one. Without
/// recursion: a walk may be as long as there are states.
class Components {
 public:
  explicit Components(const std::vector<std::vector<uint32_t>>& next)
      : next_(next),
        of(next.size(), kNone),
        seen_(next.size(), kNone),
        low_(next.size(), 0),
        at_(next.size(), 0) {
    for (uint32_t node = 0; node < next.size(); ++node) {
      if (seen_[node] == kNone) From(node);
    }
  }

 private:
  const std::vector<std::vector<uint32_t>>& next_;

 public:
  std::vector<uint32_t> of;  // [node]: its component
  uint32_t count = 0;

 private:
  void From(uint32_t root) {
    Enter(root);
    while (!path_.empty()) {
      const uint32_t node = path_.back();
      if (at_[node] < next_[node].size()) {
        const uint32_t to = next_[node][at_[node]++];
        if (seen_[to] == kNone) {
          Enter(to);
        } else if (of[to] == kNone) {
          low_[node] = std::min(low_[node], seen_[to]);
        }
        continue;
      }
      path_.pop_back();
      if (!path_.empty()) low_[path_.back()] = std::min(low_[path_.back()], low_[node]);
      if (low_[node] != seen_[node]) continue;
      uint32_t member = kNone;
      do {
        member = open_.back();
        open_.pop_back();
        of[member] = count;
      } while (member != node);
      ++count;
    }
  }
  void Enter(uint32_t node) {
    seen_[node] = low_[node] = entered_++;
    path_.push_back(node);
    open_.push_back(node);
  }

  std::vector<uint32_t> seen_;
  std::vector<uint32_t> low_;
  std::vector<size_t> at_;  // the next of its steps
  std::vector<uint32_t> path_;
  std::vector<uint32_t> open_;
  uint32_t entered_ = 0;
};

}  // namespace

Bound MostBegins(const std::vector<Passage>& passages) {
  std::unordered_map<uint32_t, uint32_t> index;
  std::vector<std::vector<uint32_t>> next;
  const auto intern = [&](uint32_t state) {
    const auto [entry, fresh] = index.emplace(state, static_cast<uint32_t>(next.size()));
    if (fresh) next.emplace_back();
    return entry->second;
  };
  for (const Passage& passage : passages) {
    const uint32_t from = intern(passage.from);
    const uint32_t to = intern(passage.to);
    next[from].push_back(to);
  }
  const Components components(next);
  // Those that lead out of each component, by where they start: later components lead to earlier
  // ones.
  std::vector<std::vector<Passage>> out(components.count);
  Bound bound;
  for (const Passage& passage : passages) {
    const uint32_t from = components.of[index.at(passage.from)];
    const uint32_t to = components.of[index.at(passage.to)];
    if (from != to) {
      out[from].push_back({from, to, passage.begins});
    } else if (passage.begins) {
      bound.bounded = false;
      bound.at = passage.to;
      return bound;
    }
  }
  std::vector<uint32_t> most(components.count, 0);
  for (uint32_t from = 0; from < components.count; ++from) {
    for (const Passage& passage : out[from]) {
      most[from] = std::max(most[from], most[passage.to] + (passage.begins ? 1u : 0u));
    }
    bound.begins = std::max(bound.begins, most[from]);
  }
  return bound;
}

}  // namespace sluice::scheduler::model
