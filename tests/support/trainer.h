// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <string>
#include <vector>

#include "tests/support/test_bed.h"

namespace sluice::testing {

/// A run of the training program of examples/.
struct TrainerRun {
  std::string model;
  uint64_t seed = 1;
  uint64_t iterations = 30;
  std::vector<std::string> extra;  // further flags

  std::vector<std::string> Command() const;
  std::string Label() const;
};

struct TrainerResult {
  std::vector<std::string> losses;  // as printed, in hexadecimal
  uint64_t peak_bytes = 0;
};

/// A test bed whose kernels last as long as the host needs for them, as in the demo: else the
/// device would mostly idle, and nothing would be lent.
BedOptions TrainerBed();

/// What a trainer that ended well has printed; fails the test otherwise.
TrainerResult ResultOf(const cli::JobProcess& job);

/// Runs it alone on a large simulated GPU without Sluice: what every other run must compute.
TrainerResult RunAlone(const TrainerRun& run);

/// Fails the test unless the job computed the same, bit for bit.
void ExpectSameLosses(const TrainerResult& expected, const cli::JobProcess& job);

}  // namespace sluice::testing
