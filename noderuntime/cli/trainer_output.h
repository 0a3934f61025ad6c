// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/status.h"

namespace sluice::cli {

/// What the training program has said so far.
struct TrainerOutput {
  /// The losses as printed, in hexadecimal: equal texts are equal bits.
  std::vector<std::string> losses;
  std::optional<uint64_t> peak_bytes;  // of its last line, "done ... peak_bytes=N"
};

/// Reads "loss ITERATION HEX-FLOAT" and "done ... peak_bytes=N ...". Lines that are not the
/// trainer's are passed over; a line of its own that cannot be read is an error.
Result<TrainerOutput> ParseTrainerOutput(const std::vector<std::string>& lines);

/// Whether every loss is a finite number: only then does equality prove anything.
bool AllFinite(const std::vector<std::string>& losses);

/// How many losses `lines` hold, for progress.
size_t CountLosses(const std::vector<std::string>& lines);

/// Empty when both sequences are the same, bit for bit; else where they part.
std::string CompareLosses(const std::vector<std::string>& expected,
                          const std::vector<std::string>& actual);

}  // namespace sluice::cli
