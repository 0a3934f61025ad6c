// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "scheduler/ledger/types.h"

/// Ways of sharing that are measured where jobs really run, one after the other: what `auto` does
/// with what its search (simulate/tune.h) left over. Pure: whoever runs the jobs says how far they
/// are and puts each way in force.
namespace sluice::scheduler {

/// How far a job is.
struct Progress {
  JobId job = kNoJob;
  uint64_t iterations = 0;  // ended since any time; never falls
  double last_end_ns = 0;   // when the last of them ended
  double gpu_ns = 0;        // GPU time of one, alone
};

struct TrialOptions {
  /// Each way is looked at so often, in turn, so that what drifts meanwhile meets all of them.
  uint32_t rounds = 2;
  /// Iterations of each job in one look, counted from the end of one to the end of another: a look
  /// that begins anywhere would be off by up to one.
  uint32_t iterations = 4;
  /// What is under way when a way comes into force belongs to the one before it.
  uint32_t settle = 1;
  /// How much more another way has to get done than the steady one, and than the first, which is in
  /// force: a change that gains nothing costs what is known of the old one.
  double least_gain = 0.02;
  /// A look ends after this time: somebody gets nowhere, or iterations are very long.
  double most_ns = 120e9;
};

class Trials {
 public:
  /// `ways`: how many there are; the first is in force. At least one. `steady`: the one to stay
  /// with where no other measures `least_gain` better, before the one in force.
  Trials(size_t ways, const TrialOptions& options, size_t steady = 0);

  /// Of every job that shares the GPU, always the same ones. True: another way is to come into
  /// force, current().
  bool Observe(const std::vector<Progress>& jobs, double now_ns);

  /// A look at this way lasts at least so long, and twice as long at most where that is more than
  /// TrialOptions::most_ns; it measures all of that time: what jobs do under it is not alike from
  /// one iteration to the next.
  void LastsAtLeast(size_t way, double ns) { least_ns_[way] = ns; }

  /// What happened since the look began says nothing: it begins anew.
  void Restart() { begun_ = false; }

  /// The way that is to be in force now; when done(), the one that is to stay.
  size_t current() const { return current_; }
  bool done() const { return done_; }
  /// Whether a look ended for want of time: what it says of who got nowhere may be chance.
  bool cut_short() const { return cut_short_; }
  /// GPU time, alone, of what all jobs got done, over the time it took; the mean of the looks that
  /// have ended. 0: there was none.
  double Rate(size_t way) const;

 private:
  struct Look {
    uint64_t from = 0;      // iterations of the job when the way came into force
    uint64_t first = 0;     // behind the settling
    double first_ns = 0;    // when that ended
    bool counting = false;  // first_ns is known
    uint64_t last = 0;
    double last_ns = 0;
    double gpu_ns = 0;
  };
  struct Sum {
    double rates = 0;
    uint32_t looks = 0;
  };

  bool LookIsWhole(double now_ns) const;
  bool EndLook(double now_ns);
  size_t Best() const;

  TrialOptions options_;
  size_t steady_;
  std::vector<Sum> sums_;         // [way]
  std::vector<double> least_ns_;  // [way]; 0: as long as it takes
  std::map<JobId, Look> looks_;
  bool begun_ = false;  // looks_ is of the way in force
  double since_ns_ = 0;
  size_t current_ = 0;
  uint32_t round_ = 0;
  bool done_ = false;
  bool cut_short_ = false;
};

}  // namespace sluice::scheduler
