// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "noderuntime/flow/flow.h"
#include "noderuntime/tuner/search.h"
#include "scheduler/trial/trials.h"

namespace sluice::tuner {

using flow::Way;

/// For people: "flow, 2 lanes, claims by steps, in 18.0 MiB, credit 1/16 of an iteration"; the last
/// two where they are not as usual.
std::string WayText(const Way& way, uint64_t unit_bytes);

enum class State : uint8_t {
  kIdle,       // fewer than two jobs with a profile, or one that is being measured
  kWaiting,    // for the jobs to have done a few iterations beside each other
  kSearching,  // the model runs
  kMeasuring,  // what the model left over is tried on the jobs
  kChosen,
};
const char* StateName(State state);

struct TunerOptions {
  /// Claims up to this kind are tried, where everybody is insured.
  scheduler::Claims most_claims = scheduler::Claims::kCurve;
  /// Jobs and profiles have to have been the same for so long before a search.
  uint64_t same_for_ns = 1'000'000'000;
  uint32_t least_iterations = 3;  // of each job, before a search
  uint32_t most_ways = 5;         // measured, the one in force and `temporal` among them
  /// Soft budgets below the pool are tried, and other credits where nobody gave one.
  bool soft_budgets = true;
  /// Bases are kept in so much host memory by turns, where that gets more done; 0: all stay.
  flow::Units host_units = 0;
  scheduler::TrialOptions trials;
  /// What was chosen is looked at again for so many iterations of each job at a time. Where it gets
  /// less done than another way did, all are measured anew; each time both get twice as long.
  uint32_t watched_iterations = 24;
};

/// `auto` on a running node: drops what the model finds hopeless, measures the rest on the jobs
/// themselves, keeps the best, and looks again when the jobs change or the best does not stay it.
/// Whatever is in force, the ledger's promises hold: a way can cost time, never an iteration.
class Tuner {
 public:
  /// `searcher` outlives it.
  Tuner(const TunerOptions& options, Searcher* searcher);

  /// Often. May put another way in force; says so in one line.
  std::optional<std::string> Look(flow::Flow* flow, uint64_t now_ns);

  State state() const { return state_; }
  struct Candidate {
    Way way;
    double predicted = 0;  // over `temporal`, by the model; 0: the model was not asked
    double measured = 0;   // GPU time, alone, of what the jobs get done, over the time; 0: not yet
  };
  /// Of the jobs that there are: the one in force when it began stands first.
  std::vector<Candidate> candidates() const;

 private:
  /// A job as far as a choice depends on it.
  struct KnownJob {
    flow::JobId id = 0;
    uint32_t period = 0;
    flow::Units peak = 0;
  };
  using Key = std::vector<KnownJob>;  // by id
  /// The same jobs: a profile that is measured anew is never quite the same.
  static bool Same(const Key& a, const Key& b);

  static std::optional<Key> KeyOf(const flow::Flow& flow);
  void BeginAnew(const Key& key, const flow::Flow& flow, uint64_t now_ns);
  bool Outgrown(const flow::Flow& flow);
  Way WayOf(const scheduler::simulate::Setting& setting, const flow::Flow& flow) const;
  bool ReadyToSearch(const flow::Flow& flow, uint64_t now_ns) const;
  SearchTask TaskFor(const flow::Flow& flow) const;
  void Judge(const SearchResult& found, const flow::Flow& flow);
  std::vector<scheduler::Progress> ProgressOf(const flow::Flow& flow) const;
  std::optional<std::string> PutInForce(const Way& way, flow::Flow* flow, uint64_t now_ns);
  std::string Choose(Way way, flow::Flow* flow, uint64_t now_ns);
  void BeginTrials();
  void BeginWatch(const Way& way);
  void LookOverSlices(size_t candidate, const Way& way);
  std::optional<std::string> Watch(const flow::Flow& flow, uint64_t now_ns);

  TunerOptions options_;
  Searcher* searcher_;
  State state_ = State::kIdle;
  Key key_;
  bool interrupted_ = false;  // the jobs could not be looked at for a while
  uint64_t since_ns_ = 0;
  std::map<flow::JobId, uint64_t> ended_before_;  // iterations, when key_ was new
  std::vector<Candidate> candidates_;
  std::optional<scheduler::Trials>
      trials_;  // of these, in kMeasuring; in kChosen of what is watched
  uint32_t watched_iterations_ = 0;
  uint32_t look_iterations_ = 0;  // of each job in one look of a trial
  std::optional<Way> wanted_;     // put in force for these jobs
  uint64_t outgrown_ = 0;         // Flow::soft_budgets_outgrown, as it was seen last
  bool soft_budgets_ = true;      // no job of key_ has outgrown one
  /// What was chosen for the jobs of the last while: they may come back to the same.
  struct Choice {
    Key key;
    Way way;
    std::vector<Candidate> candidates;
  };
  std::vector<Choice> chosen_;
};

}  // namespace sluice::tuner
