// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/simulate/tune.h"

#include <algorithm>
#include <deque>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "scheduler/policy/policies.h"

namespace sluice::scheduler::simulate {

namespace {

/// A slice of residence is so many times as long as the move that ends it, and as an iteration.
constexpr double kMovesOfASlice = 128;
constexpr double kLeastIterations = 4;

double LongestNs(const std::vector<JobRun>& runs) {
  double longest = 0;
  for (const JobRun& run : runs) longest = std::max(longest, run.workload->alone_ns);
  return longest;
}

uint64_t SliceNs(const std::vector<JobRun>& runs, const Options& options) {
  Units largest = 0;
  for (const JobRun& run : runs) largest = std::max(largest, run.workload->base_units);
  const double bytes = static_cast<double>(largest) * static_cast<double>(options.unit_bytes);
  const double moves_ns = kMovesOfASlice * bytes / options.host.bytes_per_ns;
  return static_cast<uint64_t>(std::max(moves_ns, kLeastIterations * LongestNs(runs)));
}

/// How many bases may be in the pool at once: fewer than all, where host memory has room for the
/// others and what they leave is more than a thirty-second of the pool.
std::vector<uint32_t> Residents(const std::vector<JobRun>& runs, const Options& options) {
  std::vector<Units> bases;
  for (const JobRun& run : runs) bases.push_back(run.workload->base_units);
  std::sort(bases.begin(), bases.end());
  std::vector<uint32_t> residents;
  for (size_t stay = 2; stay < bases.size(); ++stay) {
    const auto away = static_cast<std::ptrdiff_t>(bases.size() - stay);
    const auto least = std::accumulate(bases.begin(), bases.begin() + away, uint64_t{0});
    const auto most = std::accumulate(bases.end() - away, bases.end(), uint64_t{0});
    if (least * 32 >= options.pool_units && most <= options.host.units)
      residents.push_back(static_cast<uint32_t>(stay));
  }
  return residents;
}

void BestFirst(std::vector<Tried>* tried) {
  std::stable_sort(tried->begin(), tried->end(),
                   [](const Tried& a, const Tried& b) { return a.throughput > b.throughput; });
}

/// All that was tried in one search, each setting once.
class Search {
 public:
  /// `kinds`: the jobs that `runs` stand for; equal ones have one workload.
  Search(const std::vector<JobRun>& runs, const std::vector<JobRun>& kinds, const Machine& machine,
         const Options& options, const std::function<bool()>& stopped)
      : runs_(runs), kinds_(kinds), machine_(machine), options_(options), stopped_(stopped) {}

  size_t size() const { return tried_.size(); }
  bool stopped() const { return stopped_ && stopped_(); }

  /// What the setting gets done; 0 where it cannot run. A search goes on without it.
  double Try(const Setting& setting) {
    for (const Tried& earlier : tried_) {
      if (Same(earlier.setting, setting)) return earlier.throughput;
    }
    if (stopped()) return 0;
    tried_.push_back({setting, Throughput(setting)});
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

  /// The best `count` of those that differ: under one policy and one kind of claims, settings that
  /// got the same done to the last bit had the jobs do the same (a switch that did not matter), and
  /// one of them says it all.
  std::vector<Tried> Distinct(size_t count) const {
    std::vector<Tried> distinct;
    for (const Tried& tried : Ranked()) {
      if (distinct.size() == count || tried.throughput <= 0) break;
      const bool known =
          std::any_of(distinct.begin(), distinct.end(), [&tried](const Tried& other) {
            return other.throughput == tried.throughput &&
                   other.setting.policy.policy == tried.setting.policy.policy &&
                   other.setting.claims == tried.setting.claims;
          });
      if (!known) distinct.push_back(tried);
    }
    return distinct;
  }

 private:
  double Throughput(const Setting& setting) const {
    Options options = options_;
    options.setting = setting;
    const size_t residents = setting.policy.residents;
    if (residents == 0) return Throughput(runs_, options);
    // Most of a slice is as if those whose bases are away were not there; a close look has the
    // moves.
    options.setting.policy.residents = 0;
    std::map<std::vector<const Workload*>, double> seen;
    double sum = 0;
    for (size_t first = 0; first < runs_.size(); ++first) {
      std::vector<JobRun> there;
      std::vector<const Workload*> kinds;
      for (size_t i = 0; i < residents; ++i) {
        there.push_back(runs_[(first + i) % runs_.size()]);
        kinds.push_back(kinds_[(first + i) % runs_.size()].workload);
      }
      std::sort(kinds.begin(), kinds.end());
      const auto [entry, fresh] = seen.try_emplace(kinds, 0);
      if (fresh) entry->second = Throughput(there, options);
      sum += entry->second;
    }
    return sum / static_cast<double>(runs_.size());
  }

  double Throughput(const std::vector<JobRun>& runs, const Options& options) const {
    const Result<Outcome> outcome = Simulate(runs, machine_, options);
    return outcome.ok() ? outcome->Throughput() : 0;
  }

  bool Same(const Setting& a, const Setting& b) const {
    return a.policy.policy == b.policy.policy && a.policy.lanes == b.policy.lanes &&
           a.claims == b.claims && a.steps == b.steps && a.budget == b.budget &&
           a.drain == b.drain && a.policy.residents == b.policy.residents &&
           a.policy.phase == b.policy.phase && a.policy.soft_budget == b.policy.soft_budget &&
           a.policy.groups_per_peak == b.policy.groups_per_peak && SameCredit(a, b);
  }

  /// Of a long iteration every part is more than the most credit.
  bool SameCredit(const Setting& a, const Setting& b) const {
    return std::all_of(runs_.begin(), runs_.end(), [&](const JobRun& run) {
      return CreditOf(*run.workload, options_, a) == CreditOf(*run.workload, options_, b);
    });
  }

  const std::vector<JobRun>& runs_;
  const std::vector<JobRun>& kinds_;
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

/// The same of a phase.
std::vector<double> Around(double phase) {
  if (phase <= 0) return {};
  std::vector<double> around;
  for (const double by : {-0.06, -0.03, 0.03, 0.06}) around.push_back(phase + by);
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

/// With bases in host memory by turns: what the first look has, with the furthest claims.
std::vector<Setting> SliceLook(const std::vector<JobRun>& runs, const Options& options,
                               const TuneOptions& tuning) {
  std::vector<Setting> settings;
  const uint64_t slice_ns = SliceNs(runs, options);
  for (const uint32_t residents : Residents(runs, options)) {
    for (Setting setting : FirstLook(residents, tuning)) {
      if (setting.claims != tuning.claims) continue;
      setting.policy.residents = residents;
      setting.policy.slice_ns = slice_ns;
      settings.push_back(setting);
    }
  }
  return settings;
}

/// What is looked at closely.
std::vector<Setting> Candidates(const std::vector<Tried>& ranked, const TuneOptions& tuning,
                                size_t count) {
  std::vector<Setting> candidates;
  for (const Tried& tried : ranked) {
    if (candidates.size() >= count) break;
    const Setting& setting = tried.setting;
    const bool kin = std::any_of(candidates.begin(), candidates.end(), [&](const Setting& other) {
      return other.policy.policy == setting.policy.policy && other.claims == setting.claims &&
             other.policy.lanes == setting.policy.lanes &&
             other.policy.residents == setting.policy.residents;
    });
    if (!tuning.one_of_each || !kin) candidates.push_back(setting);
  }
  return candidates;
}

/// Of `ranked`, best first: the best under each policy, and then the next best. What a policy gets
/// done with its switches where they stand by default tells little of what it can get done.
std::vector<Tried> BestOfEach(const std::vector<Tried>& ranked, size_t count) {
  std::vector<Tried> chosen;
  std::vector<Tried> others;
  std::set<std::string> policies;
  for (const Tried& tried : ranked) {
    (policies.insert(tried.setting.policy.policy).second ? chosen : others).push_back(tried);
  }
  chosen.insert(chosen.end(), others.begin(), others.end());
  chosen.resize(std::min(chosen.size(), count));
  return chosen;
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

  // Of three and more jobs a coarse look tells less: who meets whom hangs on little.
  const uint32_t times = runs.size() > 2 && !tuning.one_of_each ? 2 : 1;
  const CoarseRuns coarse(runs, tuning.kernels);
  Options looks = options;
  looks.iterations = std::min(options.iterations, tuning.iterations);
  Search search(coarse.runs(), runs, machine, looks, tuning.stopped);
  for (const Setting& setting : FirstLook(runs.size(), tuning)) search.Try(setting);
  for (const Setting& setting : SliceLook(runs, options, tuning)) search.Try(setting);
  const auto with_budget = [&](Setting* setting, Units budget) {
    (tuning.soft ? setting->policy.soft_budget : setting->budget) = budget;
  };
  const auto with_drain = [](Setting* setting, Drain drain) { setting->drain = drain; };
  const auto with_credit = [](Setting* setting, double parts) { setting->credit_parts = parts; };
  const auto with_phase = [](Setting* setting, double phase) { setting->policy.phase = phase; };
  const auto with_groups = [](Setting* setting, uint32_t groups) {
    setting->policy.groups_per_peak = groups;
  };
  const std::vector<Units> budgets = Budgets(runs, options.pool_units, tuning.budgets);
  for (const Tried& good : BestOfEach(search.Distinct(search.size()), times * tuning.refined)) {
    Setting setting = search.Best(good.setting, budgets, with_budget);
    if (setting.policy.policy == "nodegroup")
      setting = search.Best(setting, tuning.groups, with_groups);
    setting = search.Best(setting, tuning.credits, with_credit);
    const Units found = tuning.soft ? setting.policy.soft_budget : setting.budget;
    setting = search.Best(setting, Around(found, options.pool_units, budgets), with_budget);
    // With the budget that was found and without one: both keep jobs apart, and either may do.
    for (const Units budget :
         {tuning.soft ? setting.policy.soft_budget : setting.budget, Units{0}}) {
      Setting apart = setting;
      with_budget(&apart, budget);
      apart = search.Best(apart, tuning.phases, with_phase);
      apart = search.Best(apart, Around(apart.policy.phase), with_phase);
      if (search.Try(apart) > search.Try(setting)) setting = apart;
    }
    if (!tuning.drains) continue;
    search.Best(setting, std::vector<Drain>{Drain::kWhenOthersWait, Drain::kNever}, with_drain);
  }
  tuned.tried = search.Ranked();
  const double least = tuned.temporal * (1 + tuning.least_gain);
  for (const Setting& candidate :
       Candidates(search.Distinct(search.size()), tuning, times * tuning.candidates)) {
    if (search.stopped()) break;
    Options chosen = options;
    chosen.setting = candidate;
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
