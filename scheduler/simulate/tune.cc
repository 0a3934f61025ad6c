// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/simulate/tune.h"

#include <algorithm>
#include <deque>
#include <set>
#include <utility>

#include "scheduler/policy/policies.h"

namespace sluice::scheduler::simulate {

namespace {

void BestFirst(std::vector<Tried>* tried) {
  std::stable_sort(tried->begin(), tried->end(),
                   [](const Tried& a, const Tried& b) { return a.throughput > b.throughput; });
}

/// All that was tried in one search, each setting once.
class Search {
 public:
  Search(const std::vector<JobRun>& runs, const Machine& machine, const Options& options,
         const std::function<bool()>& stopped)
      : runs_(runs), machine_(machine), options_(options), stopped_(stopped) {}

  bool stopped() const { return stopped_ && stopped_(); }

  /// What the setting gets done; 0 where it cannot run. A search goes on without it.
  double Try(const Setting& setting) {
    for (const Tried& earlier : tried_) {
      if (Same(earlier.setting, setting)) return earlier.throughput;
    }
    if (stopped()) return 0;
    Options options = options_;
    options.setting = setting;
    const Result<Outcome> outcome = Simulate(runs_, machine_, options);
    tried_.push_back({setting, outcome.ok() ? outcome->Throughput() : 0});
    return tried_.back().throughput;
  }

  /// The best of `setting` and its variants, of which `change` makes one per value.
  template <typename Value, typename Change>
  Setting Best(Setting setting, const std::vector<Value>& values, Change change) {
    double most = Try(setting);
    Setting best = setting;
    for (const Value& value : values) {
      Setting variant = setting;
      change(&variant, value);
      const double throughput = Try(variant);
      if (throughput <= most) continue;
      most = throughput;
      best = variant;
    }
    return best;
  }

  std::vector<Tried> Ranked() const {
    std::vector<Tried> ranked = tried_;
    BestFirst(&ranked);
    return ranked;
  }

 private:
  static bool Same(const Setting& a, const Setting& b) {
    return a.policy.policy == b.policy.policy && a.policy.lanes == b.policy.lanes &&
           a.claims == b.claims && a.steps == b.steps && a.budget == b.budget &&
           a.drain == b.drain && a.credit_parts == b.credit_parts &&
           a.policy.groups_per_peak == b.policy.groups_per_peak;
  }

  const std::vector<JobRun>& runs_;
  const Machine& machine_;
  const Options& options_;
  const std::function<bool()>& stopped_;
  std::vector<Tried> tried_;
};

/// From the least pool up to `pool`.
std::vector<Units> Budgets(const std::vector<JobRun>& runs, Units pool, uint32_t count) {
  std::vector<Units> budgets;
  const auto least = static_cast<Units>(std::min<uint64_t>(LeastPool(runs), pool));
  for (uint32_t i = 0; i < count; ++i) {
    budgets.push_back(least + static_cast<Units>(uint64_t{pool - least} * i / count));
  }
  return budgets;
}

/// A finer look on both sides of a budget that was found good.
std::vector<Units> Around(Units budget, Units pool, const std::vector<Units>& budgets) {
  if (budgets.empty()) return {};
  const Units at = budget == 0 ? pool : budget;
  const Units step = budgets.size() > 1 ? std::max<Units>(1, (budgets[1] - budgets[0]) / 4) : 1;
  std::vector<Units> around;
  for (const int k : {-3, -2, -1, 1, 2, 3}) {
    const int64_t value = int64_t{at} + int64_t{k} * step;
    if (value >= budgets.front() && value <= pool) around.push_back(static_cast<Units>(value));
  }
  return around;
}

/// The jobs of a search, as it looks at them.
class CoarseRuns {
 public:
  CoarseRuns(const std::vector<JobRun>& runs, size_t kernels) : runs_(runs) {
    for (JobRun& run : runs_) {
      jobs_.push_back(Coarse(*run.workload, kernels));
      run.workload = &jobs_.back();
    }
  }
  CoarseRuns(const CoarseRuns&) = delete;
  CoarseRuns& operator=(const CoarseRuns&) = delete;
  const std::vector<JobRun>& runs() const { return runs_; }

 private:
  std::deque<Workload> jobs_;
  std::vector<JobRun> runs_;
};

/// Every policy with every kind of claims, and its own switches where they stand by default.
std::vector<Setting> FirstLook(size_t jobs, const TuneOptions& tuning) {
  std::vector<Setting> settings;
  std::set<uint32_t> lanes_tried = {2, static_cast<uint32_t>(jobs)};
  for (const Claims claims : {Claims::kContract, Claims::kSteps, Claims::kCurve}) {
    if (claims > tuning.claims) break;
    for (const PolicyEntry& policy : Policies()) {
      if (policy.name == "temporal") continue;
      for (const uint32_t lanes : lanes_tried) {
        Setting setting;
        setting.policy.policy = policy.name;
        setting.policy.lanes = lanes;
        setting.claims = claims;
        settings.push_back(setting);
        if (!tuning.drains) continue;
        setting.drain = Drain::kNever;
        settings.push_back(setting);
      }
    }
  }
  return settings;
}

}  // namespace

Result<Tuned> Tune(const std::vector<JobRun>& runs, const Machine& machine, const Options& options,
                   const TuneOptions& tuning) {
  Options turns = options;
  turns.setting = Setting();
  turns.setting.policy.policy = "temporal";
  Result<Outcome> temporal = Simulate(runs, machine, turns);
  if (!temporal.ok()) return temporal.status();
  Tuned tuned;
  tuned.setting = turns.setting;
  tuned.temporal = temporal->Throughput();
  tuned.outcome = std::move(*temporal);
  if (runs.size() < 2) return tuned;

  const CoarseRuns coarse(runs, tuning.kernels);
  Search search(coarse.runs(), machine, options, tuning.stopped);
  for (const Setting& setting : FirstLook(runs.size(), tuning)) search.Try(setting);
  const auto with_budget = [](Setting* setting, Units budget) { setting->budget = budget; };
  const auto with_drain = [](Setting* setting, Drain drain) { setting->drain = drain; };
  const auto with_credit = [](Setting* setting, double parts) { setting->credit_parts = parts; };
  const std::vector<Units> budgets = Budgets(runs, options.pool_units, tuning.budgets);
  std::vector<Tried> first = search.Ranked();
  first.resize(std::min<size_t>(first.size(), tuning.refined));
  for (const Tried& good : first) {
    Setting setting = search.Best(good.setting, budgets, with_budget);
    setting = search.Best(setting, tuning.credits, with_credit);
    setting =
        search.Best(setting, Around(setting.budget, options.pool_units, budgets), with_budget);
    if (!tuning.drains) continue;
    search.Best(setting, std::vector<Drain>{Drain::kWhenOthersWait, Drain::kNever}, with_drain);
  }
  tuned.tried = search.Ranked();
  const double least = tuned.temporal * (1 + tuning.least_gain);
  for (size_t i = 0; i < std::min<size_t>(tuned.tried.size(), tuning.candidates); ++i) {
    if (search.stopped()) break;
    Options chosen = options;
    chosen.setting = tuned.tried[i].setting;
    Result<Outcome> outcome = Simulate(runs, machine, chosen);
    if (!outcome.ok()) continue;
    const double throughput = outcome->Throughput();
    if (throughput <= least) continue;
    tuned.finalists.push_back({chosen.setting, throughput});
    if (throughput <= tuned.outcome.Throughput()) continue;
    tuned.setting = chosen.setting;
    tuned.outcome = *std::move(outcome);
  }
  if (search.stopped()) return Status(StatusCode::kUnavailable, "the search was stopped");
  BestFirst(&tuned.finalists);
  return tuned;
}

}  // namespace sluice::scheduler::simulate
