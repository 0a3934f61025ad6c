// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <string>
#include <vector>

#include "tests/support/test_bed.h"

namespace sluice::testing {

/// A job that runs beside what a test does to others, until it is told to end. Then it must have
/// computed what it computes alone. Its peak is 11 MiB, its base 1 MiB; the GPU of the test bed
/// needs as much outside of the pool for the comparison.
class Peer {
 public:
  explicit Peer(TestBed& bed);

  /// Returns once a gate was opened for it with a profile: from then on it lends and borrows.
  void AwaitProfile();
  /// Returns once it was at its trough `count` more times. False: not in time.
  bool AwaitIterations(size_t count);
  scheduler::JobId job() const { return job_; }
  /// Returns once it has ended for want of memory. Fails the test when it ends otherwise.
  const cli::JobProcess& AwaitOutOfMemory();
  /// Ends it and compares. Fails the test when anything differs.
  void FinishAndCompare();

 private:
  static std::vector<std::string> Command(const std::vector<std::string>& extra);

  TestBed& bed_;
  InputPipe input_;
  cli::JobProcess process_;
  scheduler::JobId job_ = scheduler::kNoJob;
};

}  // namespace sluice::testing
