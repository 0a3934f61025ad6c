// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "bench/frontier_policies.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "noderuntime/cli/offline/format.h"
#include "noderuntime/cli/offline/setting_options.h"
#include "scheduler/policy/policies.h"

namespace sluice::bench {
namespace {

using cli::Format;
using scheduler::Claims;
using scheduler::Units;
using scheduler::simulate::Drain;
using scheduler::simulate::JobRun;
using scheduler::simulate::Options;
using scheduler::simulate::Setting;
using scheduler::simulate::Tried;
using scheduler::simulate::Workload;

constexpr size_t kKernels = 1000;  // of a job, while all of the grid is looked at
constexpr size_t kLookedAt = 6;    // of each policy, with all its kernels
constexpr uint32_t kBudgets = 4;   // below the pool
constexpr double kGoal = 0.95;     // of the best

/// All combinations of what `auto` may set, coarsely.
std::vector<Setting> Grid(const std::string& policy, size_t jobs, Units least, Units pool) {
  std::vector<Units> budgets = {0};
  for (uint32_t i = 0; i < kBudgets && least < pool; ++i) {
    budgets.push_back(least + (pool - least) * i / kBudgets);
  }
  std::vector<uint32_t> groups = {scheduler::kGroupsPerPeak};
  if (policy == "nodegroup") groups.push_back(20);
  std::vector<Setting> grid;
  Setting setting;
  setting.policy.policy = policy;
  for (const uint32_t lanes : std::set<uint32_t>{2, static_cast<uint32_t>(jobs)}) {
    for (const Claims claims : {Claims::kContract, Claims::kSteps, Claims::kCurve}) {
      for (const Drain drain : {Drain::kWhenOthersWait, Drain::kNever}) {
        for (const double credit : {8.0, 32.0}) {
          for (const double phase : {0.0, 0.25, 0.4, 0.5, 0.6, 0.75}) {
            for (const uint32_t per_peak : groups) {
              for (const Units budget : budgets) {
                setting.policy.lanes = lanes;
                setting.claims = claims;
                setting.drain = drain;
                setting.credit_parts = credit;
                setting.policy.phase = phase;
                setting.policy.groups_per_peak = per_peak;
                setting.budget = budget;
                grid.push_back(setting);
              }
            }
          }
        }
      }
    }
  }
  return grid;
}

double ThroughputOf(const std::vector<JobRun>& runs, const Regime& regime, Options options,
                    const Setting& setting) {
  options.setting = setting;
  const auto outcome = Simulate(runs, regime.machine, options);
  return outcome.ok() ? outcome->Throughput() : 0;  // what cannot run gets nothing done
}

/// The best of the grid: by jobs with fewer kernels, and the first few by the jobs themselves.
Tried BestOf(const std::vector<Setting>& grid, const std::vector<JobRun>& coarse,
             const std::vector<JobRun>& runs, const Regime& regime, const Options& options) {
  std::vector<Tried> tried;
  tried.reserve(grid.size());
  for (const Setting& setting : grid) {
    tried.push_back({setting, ThroughputOf(coarse, regime, options, setting)});
  }
  std::stable_sort(tried.begin(), tried.end(),
                   [](const Tried& a, const Tried& b) { return a.throughput > b.throughput; });
  Tried best;
  double last = -1;
  size_t looked_at = 0;
  for (const Tried& one : tried) {
    if (looked_at == kLookedAt) break;
    // A switch that did not matter: the jobs did the same.
    if (one.throughput == last) continue;
    last = one.throughput;
    ++looked_at;
    const double throughput = ThroughputOf(runs, regime, options, one.setting);
    if (throughput > best.throughput) best = {one.setting, throughput};
  }
  return best;
}

double RetainedOf(const PolicyRow& row, double throughput) {
  return row.unlimited > 1 ? (throughput - 1) / (row.unlimited - 1) : 1;
}

}  // namespace

double PolicyRow::Best(size_t pool) const {
  double best = 1;
  for (const PolicyLine& line : lines) best = std::max(best, line.throughput[pool]);
  return best;
}

PolicyRow MeasurePolicies(const Regime& regime, const Mix& mix, const Row& known) {
  PolicyRow row;
  row.mix = mix.name;
  row.jobs = mix.models.size();
  row.error = known.error;
  row.unlimited = known.unlimited;
  if (!row.error.empty()) return row;
  std::vector<Workload> fewer;
  fewer.reserve(mix.models.size());
  std::vector<JobRun> runs;
  std::vector<JobRun> coarse;
  for (const std::string& model : mix.models) {
    const Workload& workload = regime.models.at(model);
    fewer.push_back(Coarse(workload, kKernels));
    runs.push_back({&workload, 0});
    coarse.push_back({&fewer.back(), 0});
  }
  for (const scheduler::PolicyEntry& policy : scheduler::Policies()) {
    if (policy.name != "temporal") row.lines.push_back({std::string(policy.name), {}, {}});
  }
  const auto least = static_cast<Units>(LeastPool(runs));
  for (size_t p = 0; p < kFrontierPoolCount; ++p) {
    Options options;
    options.unit_bytes = kFrontierUnit;
    options.gate_ns = regime.gate_ns;
    options.pool_units = static_cast<Units>(std::ceil(kFrontierPools[p] * least));
    row.tuned[p] = known.lines[2].throughput[p];
    row.tried = 0;
    for (PolicyLine& line : row.lines) {
      const std::vector<Setting> grid = Grid(line.policy, row.jobs, least, options.pool_units);
      row.tried += grid.size();
      const Tried best = BestOf(grid, coarse, runs, regime, options);
      line.throughput[p] = best.throughput / known.temporal;
      line.settings[p] = best.setting;
    }
  }
  return row;
}

std::string PolicyTable(char regime, const std::vector<PolicyRow>& rows) {
  std::string text = Format(
      "Regime %c (simulated): the best of a grid under each policy, over taking turns, at", regime);
  for (const double pool : kFrontierPools) text += Format(" %.2f", pool);
  text += "\n";
  std::vector<std::vector<double>> retained;  // by line, summed over what counts
  size_t counted = 0;
  for (const PolicyRow& row : rows) {
    if (!row.error.empty()) {
      text += "  " + row.mix + ": " + row.error + "\n";
      continue;
    }
    if (retained.empty()) {
      text += Format("  %-20s", "jobs");
      for (const PolicyLine& line : row.lines) text += Format("  %-22s", line.policy.c_str());
      text += Format("  %-22s  auto over the best\n", "auto");
      retained.assign(row.lines.size() + 1, std::vector<double>(kFrontierPoolCount, 0));
    }
    text += Format("  %-20s ", row.mix.c_str());
    const bool counts = row.unlimited >= kWorthCounting;
    counted += counts ? 1 : 0;
    const auto add = [&](size_t at, const double* throughput) {
      for (size_t p = 0; p < kFrontierPoolCount; ++p) {
        text += Format(" %.2f", throughput[p]);
        if (counts) retained[at][p] += RetainedOf(row, throughput[p]);
      }
      text += "   ";
    };
    for (size_t i = 0; i < row.lines.size(); ++i) add(i, row.lines[i].throughput);
    add(row.lines.size(), row.tuned);
    for (size_t p = 0; p < kFrontierPoolCount; ++p) {
      text += Format(" %.3f", row.tuned[p] / row.Best(p));
    }
    text += "\n";
  }
  text += Format("  %-20s ", "mean retained gain");
  for (const std::vector<double>& line : retained) {
    for (const double sum : line) {
      text += counted > 0 ? Format(" %.2f", sum / static_cast<double>(counted)) : "    -";
    }
    text += "   ";
  }
  return text + "\n";
}

std::vector<std::string> WorseThanBest(char regime, const std::vector<PolicyRow>& rows) {
  std::vector<std::string> worse;
  for (const PolicyRow& row : rows) {
    for (size_t p = 0; p < kFrontierPoolCount && row.error.empty(); ++p) {
      const double part = row.tuned[p] / row.Best(p);
      if (part >= kGoal) continue;
      worse.push_back(Format("%c: %s, auto at %.2f: %.3f of the best that was found, goal %.2f",
                             regime, row.mix.c_str(), kFrontierPools[p], part, kGoal));
    }
  }
  return worse;
}

nlohmann::json PolicyJson(const std::vector<PolicyRow>& rows) {
  nlohmann::json json = nlohmann::json::array();
  for (const PolicyRow& row : rows) {
    nlohmann::json entry = {{"jobs", row.mix}, {"settings_tried", row.tried}};
    if (!row.error.empty()) entry["error"] = row.error;
    for (size_t p = 0; p < kFrontierPoolCount && row.error.empty(); ++p) {
      entry["auto_over_best"].push_back(row.tuned[p] / row.Best(p));
    }
    for (const PolicyLine& line : row.lines) {
      nlohmann::json& policy = entry["policies"][line.policy];
      for (size_t p = 0; p < kFrontierPoolCount; ++p) {
        policy["over_turns"].push_back(line.throughput[p]);
        policy["retained_gain"].push_back(RetainedOf(row, line.throughput[p]));
        policy["flags"].push_back(cli::FlagsOf(line.settings[p], kFrontierUnit));
      }
    }
    json.push_back(std::move(entry));
  }
  return json;
}

}  // namespace sluice::bench
