// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sluice::replay {

/// Where a block did not hold what its last writer left.
struct Mismatch {
  uint64_t iteration = 0;
  uint64_t launch = 0;  // the operator that read it
  uint64_t block = 0;
};

/// What a replay measured and found.
struct Report {
  std::vector<double> iteration_ms;  // GPU time from the end of one to the end of the next
  double kernel_ms = 0;              // of one iteration's launches as planned, one after the other
  double wall_ms = 0;                // of all iterations, by the host's clock
  uint64_t launches = 0;
  uint64_t blocks_checked = 0;      // a block counts once for each launch that reads it
  uint64_t blocks_initialised = 0;  // read before anybody wrote them, so filled then
  uint64_t words_expected = 0;      // to be checked, as the host counted
  uint64_t words_checked = 0;       // as the GPU counted
  uint64_t mismatches = 0;          // words
  std::optional<Mismatch> first;
  uint64_t peak_live_bytes = 0;    // of blocks, in program order
  uint64_t driver_peak_bytes = 0;  // of its memory pool, rounded as it does

  /// Every word that was to be checked was, and held what its last writer left.
  bool ok() const { return mismatches == 0 && words_checked == words_expected; }
};

/// The least of the sorted values that `share` of them do not exceed; 0 when there are none.
double Percentile(std::vector<double> values, double share);

/// Lines `key=value`, without single iterations.
std::string ReportText(const Report& report);
/// One JSON object with the same keys, and each iteration.
std::string ReportJson(const Report& report);
/// One line on what is wrong; empty when nothing is.
std::string Complaint(const Report& report);

}  // namespace sluice::replay
