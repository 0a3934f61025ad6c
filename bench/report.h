// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <benchmark/benchmark.h>

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace sluice::bench {

/// The counter in which a benchmark reports the median of single operations; without it the time
/// per iteration counts.
inline constexpr const char* kMedianCounter = "p50_ns";

/// Nanoseconds of one launch, and of one block allocated and freed, through the whole client.
inline constexpr const char* kLaunchCounter = "launch_ns";
inline constexpr const char* kPairCounter = "pair_ns";
/// In one iteration.
inline constexpr const char* kMarkCounter = "marks";
/// While somebody looks at the daemon: CPU time of an iteration by that without, and nanoseconds by
/// which it is longer on a clock.
inline constexpr const char* kWatchedCounter = "watched_ratio";
inline constexpr const char* kWaitedCounter = "watched_longer_ns";
/// Of a call that looks for a decision: requests that wait then, and how many such calls answer.
inline constexpr const char* kWaitingCounter = "waiting";
inline constexpr const char* kAnsweredCounter = "answered";

/// What one iteration of a launch-bound job asks of the driver, as it was recorded (bench/data),
/// and how long it takes by the model of a GPU on which no operator is faster than 5 us.
struct LaunchBound {
  const char* name;
  uint32_t launches;
  uint32_t blocks;
  double iteration_ns;
};
inline constexpr LaunchBound kLaunchBound = {"tacotron2", 9344, 7872, 96.6e6};

/// How each policy of the table is measured, with 8 jobs: a node places up to 48 gates
/// (GateOptions), its page has room for 128.
struct LiveCell {
  uint32_t lanes;
  uint32_t gates;
};
inline constexpr LiveCell kLiveCells[] = {{2, 48}, {2, 120}, {8, 48}, {8, 120}};
/// `replayed`: all but the decisions.
std::string LiveName(const std::string& policy, const LiveCell& cell, bool replayed);

/// In percent of kLaunchBound's iteration, of the least of the repetitions: kOverhead what is
/// measured beyond the baseline, kOverheadOfLaunches its launches times that. kPartOfIteration:
/// what is measured, in percent of the same, of the median as all others are. kCount: as it is,
/// without a unit.
enum class Compare {
  kRatio,
  kDifferenceNs,
  kValueNs,
  kCount,
  kOverhead,
  kOverheadOfLaunches,
  kPartOfIteration
};

/// One line of the table: what, measured how, against which goal.
struct Comparison {
  std::string name;
  Compare how;
  std::string measured;        // a benchmark, or benchmark:counter
  std::string baseline;        // empty where nothing is compared
  std::optional<double> goal;  // at most; absent: only reported
};

const std::vector<Comparison>& Comparisons();
/// Those that measure what begins with `area`; all where it is empty.
std::vector<Comparison> ComparisonsOf(const std::string& area);

/// Prints google-benchmark's medians and keeps the nanoseconds of every repetition.
class CollectingReporter : public benchmark::ConsoleReporter {
 public:
  CollectingReporter() : ConsoleReporter(OO_Tabular) {}
  void ReportRuns(const std::vector<Run>& runs) override;

  /// Over the repetitions; empty when the benchmark did not run or failed.
  std::optional<double> MedianNs(const std::string& benchmark) const;
  std::optional<double> LeastNs(const std::string& benchmark) const;
  const std::map<std::string, std::vector<double>>& runs() const { return runs_; }
  const std::map<std::string, std::string>& errors() const { return errors_; }

 private:
  std::map<std::string, std::vector<double>> runs_;
  std::map<std::string, std::string> errors_;
};

/// The table as text, and the same with every repetition as JSON.
std::string RatioTable(const CollectingReporter& reporter,
                       const std::vector<Comparison>& comparisons);
nlohmann::json RatioJson(const CollectingReporter& reporter,
                         const std::vector<Comparison>& comparisons);

/// False when a goal was missed, or something that has a goal was not measured.
bool GoalsMet(const CollectingReporter& reporter, const std::vector<Comparison>& comparisons);

}  // namespace sluice::bench
