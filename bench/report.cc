// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "bench/report.h"

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <nlohmann/json.hpp>
#include <sstream>

#include "bench/machine.h"
#include "bench/median.h"
#include "scheduler/policy/policies.h"

namespace sluice::bench {
namespace {

std::string Rounded(double value) {
  std::ostringstream text;
  text << std::fixed << std::setprecision(value < 100 ? 2 : 0) << value;
  return text.str();
}

// What CPU time something costs: whatever else runs on the machine only adds to it.
bool TakesLeast(Compare how) {
  return how == Compare::kOverhead || how == Compare::kOverheadOfLaunches;
}

// The measured side, the other one, and the result of their comparison.
struct Outcome {
  std::optional<double> measured_ns;
  std::optional<double> baseline_ns;
  std::optional<double> result;
  std::string verdict;  // "ok", "missed", "", or why there is no result
};

Outcome Evaluate(const Comparison& comparison, const CollectingReporter& reporter) {
  Outcome outcome;
  const auto side = [&](const std::string& benchmark) {
    return TakesLeast(comparison.how) ? reporter.LeastNs(benchmark) : reporter.MedianNs(benchmark);
  };
  outcome.measured_ns = side(comparison.measured);
  const bool compared = !comparison.baseline.empty();
  if (compared) outcome.baseline_ns = side(comparison.baseline);
  const bool complete =
      outcome.measured_ns && (!compared || (outcome.baseline_ns && *outcome.baseline_ns > 0));
  if (!complete) {
    outcome.verdict = "not measured";
    for (const std::string& name : {comparison.measured, comparison.baseline}) {
      const auto error = reporter.errors().find(name);
      if (error != reporter.errors().end()) {
        outcome.verdict += ": " + error->second;
        break;
      }
    }
    return outcome;
  }
  switch (comparison.how) {
    case Compare::kRatio:
      outcome.result = *outcome.measured_ns / *outcome.baseline_ns;
      break;
    case Compare::kDifferenceNs:
      outcome.result = *outcome.measured_ns - *outcome.baseline_ns;
      break;
    case Compare::kValueNs:
    case Compare::kCount:
      outcome.result = *outcome.measured_ns;
      break;
    case Compare::kOverhead:
      outcome.result =
          100 * (*outcome.measured_ns - *outcome.baseline_ns) / kLaunchBound.iteration_ns;
      break;
    case Compare::kPartOfIteration:
      outcome.result = 100 * *outcome.measured_ns / kLaunchBound.iteration_ns;
      break;
    case Compare::kOverheadOfLaunches:
      outcome.result =
          100 * kLaunchBound.launches * *outcome.measured_ns / kLaunchBound.iteration_ns;
      break;
  }
  if (comparison.goal) outcome.verdict = *outcome.result <= *comparison.goal ? "ok" : "missed";
  return outcome;
}

std::string Unit(const Comparison& comparison) {
  switch (comparison.how) {
    case Compare::kRatio:
      return "x";
    case Compare::kCount:
      return "";
    case Compare::kOverhead:
    case Compare::kOverheadOfLaunches:
    case Compare::kPartOfIteration:
      return " %";
    default:
      return " ns";
  }
}

nlohmann::json OrNull(const std::optional<double>& value) {
  return value ? nlohmann::json(*value) : nlohmann::json(nullptr);
}

}  // namespace

std::string LiveName(const std::string& policy, const LiveCell& cell, bool replayed) {
  return "decide/live/" + policy + "/" + std::to_string(cell.lanes) + "_lanes/" +
         std::to_string(cell.gates) + "_gates" + (replayed ? "/replayed" : "");
}

namespace {

std::vector<Comparison> WithEveryPolicy(std::vector<Comparison> comparisons) {
  for (const scheduler::PolicyEntry& policy : scheduler::Policies()) {
    const std::string name(policy.name);
    for (const LiveCell& cell : kLiveCells) {
      comparisons.push_back({name + " decides for 8 jobs, " + std::to_string(cell.lanes) +
                                 " lanes, " + std::to_string(cell.gates) + " gates",
                             Compare::kDifferenceNs, LiveName(name, cell, false),
                             LiveName(name, cell, true), 2000.0});
    }
  }
  return comparisons;
}

}  // namespace

const std::vector<Comparison>& Comparisons() {
  static const std::vector<Comparison> comparisons = WithEveryPolicy({
      {"block allocate + free, resnet50: arena / mimalloc", Compare::kRatio,
       "blocks/arena/resnet50", "blocks/mimalloc/resnet50", 2.0},
      {"  through the whole client / mimalloc", Compare::kRatio, "blocks/client/resnet50",
       "blocks/mimalloc/resnet50", std::nullopt},
      {"  arena, tightest place / mimalloc", Compare::kRatio, "blocks/arena_tightest/resnet50",
       "blocks/mimalloc/resnet50", std::nullopt},
      {"  arena, two streams in turn / mimalloc", Compare::kRatio, "blocks/arena_in_turn/resnet50",
       "blocks/mimalloc/resnet50", std::nullopt},
      {"  client, two streams in turn / mimalloc", Compare::kRatio,
       "blocks/client_in_turn/resnet50", "blocks/mimalloc/resnet50", std::nullopt},
      {"  client, freed on another stream / mimalloc", Compare::kRatio,
       "blocks/client_freed_elsewhere/resnet50", "blocks/mimalloc/resnet50", std::nullopt},
      {"block allocate + free, bert-base: arena / mimalloc", Compare::kRatio,
       "blocks/arena/bert-base", "blocks/mimalloc/bert-base", 2.0},
      {"  through the whole client / mimalloc", Compare::kRatio, "blocks/client/bert-base",
       "blocks/mimalloc/bert-base", std::nullopt},
      {"  arena, tightest place / mimalloc", Compare::kRatio, "blocks/arena_tightest/bert-base",
       "blocks/mimalloc/bert-base", std::nullopt},
      {"  arena, two streams in turn / mimalloc", Compare::kRatio, "blocks/arena_in_turn/bert-base",
       "blocks/mimalloc/bert-base", std::nullopt},
      {"  client, two streams in turn / mimalloc", Compare::kRatio,
       "blocks/client_in_turn/bert-base", "blocks/mimalloc/bert-base", std::nullopt},
      {"  client, freed on another stream / mimalloc", Compare::kRatio,
       "blocks/client_freed_elsewhere/bert-base", "blocks/mimalloc/bert-base", std::nullopt},
      {"lease round trip p50 / bare ping-pong, one core", Compare::kRatio, "round_trip:lease_ns",
       "round_trip:ping_pong_ns", 1.5},
      {"the daemon's own share of a lease, one core", Compare::kValueNs, "round_trip:daemon_ns", "",
       3000.0},
      {"launch hook", Compare::kDifferenceNs, "launch/with_sluice", "launch/without", std::nullopt},
      {"launch through the whole client", Compare::kValueNs,
       std::string("hooks/launches:") + kLaunchCounter, "", std::nullopt},
      {"block through the whole client", Compare::kValueNs,
       std::string("blocks/client/bert-base:") + kPairCounter, "", std::nullopt},
      {"overhead alone, launch-bound job: all its launches", Compare::kOverheadOfLaunches,
       std::string("hooks/launches:") + kLaunchCounter, "", 1.0},
      {"  its whole iteration, each block asked of the driver", Compare::kOverhead,
       "iteration/launch_bound", "iteration/without", 1.0},
      {"  marks that it queues, each a call to the driver", Compare::kCount,
       std::string("iteration/launch_bound:") + kMarkCounter, "", std::nullopt},
      {"  somebody looks at the daemon / nobody does", Compare::kCount,
       std::string("iteration/watched:") + kWatchedCounter, "", 1.05},
      {"  the same on a clock: longer by", Compare::kPartOfIteration,
       std::string("iteration/watched:") + kWaitedCounter, "", 1.0},
      {"decision, 8 jobs, 64 units, 10 pieces held", Compare::kValueNs,
       "decide/next/8_jobs/64_units/10_pieces", "", 2000.0},
      {"  512 units", Compare::kValueNs, "decide/next/8_jobs/512_units/10_pieces", "", 2000.0},
      {"  4096 units", Compare::kValueNs, "decide/next/8_jobs/4096_units/10_pieces", "", 2000.0},
      {"  4096 units, 1000 pieces held", Compare::kValueNs,
       "decide/next/8_jobs/4096_units/1000_pieces", "", 2000.0},
      {"  2 jobs", Compare::kValueNs, "decide/next/2_jobs/512_units/10_pieces", "", std::nullopt},
      {"  4 jobs", Compare::kValueNs, "decide/next/4_jobs/512_units/10_pieces", "", std::nullopt},
      {"  8 jobs wait and none can go on", Compare::kValueNs,
       "decide/all_wait/8_jobs/512_units/10_pieces", "", 2000.0},
      {"  the same, 4096 units, 1000 pieces held", Compare::kValueNs,
       "decide/all_wait/8_jobs/4096_units/1000_pieces", "", 2000.0},
      {"safety check, 8 jobs, 64 units, 10 pieces held", Compare::kValueNs,
       "decide/safety/8_jobs/64_units/10_pieces", "", 1000.0},
      {"  512 units", Compare::kValueNs, "decide/safety/8_jobs/512_units/10_pieces", "", 1000.0},
      {"  4096 units", Compare::kValueNs, "decide/safety/8_jobs/4096_units/10_pieces", "", 1000.0},
      {"  4096 units, 1000 pieces held", Compare::kValueNs,
       "decide/safety/8_jobs/4096_units/1000_pieces", "", 1000.0},
      {"  512 units, one of each base is free", Compare::kValueNs,
       "decide/safety_missing/8_jobs/512_units/10_pieces", "", 1000.0},
  });
  return comparisons;
}

std::vector<Comparison> ComparisonsOf(const std::string& area) {
  std::vector<Comparison> result;
  for (const Comparison& comparison : Comparisons()) {
    if (comparison.measured.starts_with(area)) result.push_back(comparison);
  }
  return result;
}

void CollectingReporter::ReportRuns(const std::vector<Run>& runs) {
  std::vector<Run> shown;
  for (const Run& run : runs) {
    if (run.run_type != Run::RT_Iteration) {
      if (run.aggregate_name == "median") shown.push_back(run);
      continue;
    }
    if (run.repetitions == 1) shown.push_back(run);
    const std::string& name = run.run_name.function_name;
    if (run.error_occurred) {
      errors_[name] = run.error_message;
      continue;
    }
    const auto counter = run.counters.find(kMedianCounter);
    const double ns = counter != run.counters.end()
                          ? static_cast<double>(counter->second)
                          : run.cpu_accumulated_time * 1e9 / static_cast<double>(run.iterations);
    runs_[name].push_back(ns);
    for (const auto& [counter_name, value] : run.counters) {
      if (counter_name != kMedianCounter) runs_[name + ':' + counter_name].push_back(value);
    }
  }
  ConsoleReporter::ReportRuns(shown);
}

std::optional<double> CollectingReporter::MedianNs(const std::string& benchmark) const {
  const auto run = runs_.find(benchmark);
  if (run == runs_.end() || run->second.empty()) return std::nullopt;
  return Median(run->second);
}

std::optional<double> CollectingReporter::LeastNs(const std::string& benchmark) const {
  const auto run = runs_.find(benchmark);
  if (run == runs_.end() || run->second.empty()) return std::nullopt;
  return *std::min_element(run->second.begin(), run->second.end());
}

std::string RatioTable(const CollectingReporter& reporter,
                       const std::vector<Comparison>& comparisons) {
  std::ostringstream text;
  text << "\nMeasured on " << MachineLine() << "\n\n"
       << std::left << std::setw(52) << "" << std::right << std::setw(13) << "measured ns"
       << std::setw(13) << "baseline ns" << std::setw(12) << "result" << std::setw(12) << "goal"
       << "\n";
  for (const Comparison& comparison : comparisons) {
    const Outcome outcome = Evaluate(comparison, reporter);
    text << std::left << std::setw(52) << comparison.name << std::right;
    text << std::setw(13) << (outcome.measured_ns ? Rounded(*outcome.measured_ns) : "-");
    text << std::setw(13) << (outcome.baseline_ns ? Rounded(*outcome.baseline_ns) : "-");
    text << std::setw(12) << (outcome.result ? Rounded(*outcome.result) + Unit(comparison) : "-");
    text << std::setw(12)
         << (comparison.goal ? "<= " + Rounded(*comparison.goal) + Unit(comparison) : "");
    text << "  " << outcome.verdict << "\n";
  }
  text << "\nThe goal for blocks is judged on the arena, which finds and keeps them. The whole "
          "client "
          "adds streams,\nlocks, marks and the record for the daemon; it has no goal.\n";
  return text.str();
}

nlohmann::json RatioJson(const CollectingReporter& reporter,
                         const std::vector<Comparison>& comparisons) {
  nlohmann::json rows = nlohmann::json::array();
  for (const Comparison& comparison : comparisons) {
    const Outcome outcome = Evaluate(comparison, reporter);
    rows.push_back({{"name", comparison.name},
                    {"unit", Unit(comparison)},
                    {"measured_ns", OrNull(outcome.measured_ns)},
                    {"baseline_ns", OrNull(outcome.baseline_ns)},
                    {"result", OrNull(outcome.result)},
                    {"goal", OrNull(comparison.goal)},
                    {"verdict", outcome.verdict}});
  }
  return {
      {"machine", DescribeMachine()}, {"comparisons", rows}, {"repetitions_ns", reporter.runs()}};
}

bool GoalsMet(const CollectingReporter& reporter, const std::vector<Comparison>& comparisons) {
  return std::all_of(comparisons.begin(), comparisons.end(), [&](const Comparison& comparison) {
    return !comparison.goal || Evaluate(comparison, reporter).verdict == "ok";
  });
}

}  // namespace sluice::bench
