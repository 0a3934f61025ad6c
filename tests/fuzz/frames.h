// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "noderuntime/flow/types.h"

namespace sluice::fuzz {

struct Played {
  size_t frames = 0;                     // sent by the fuzzer's clients
  std::optional<std::string> violation;  // what should have held and did not
};

/// Plays an input against a daemon: connections, frames (well-formed, wrong in one place, or
/// noise), shared pages, time.
Played PlayFrames(std::span<const uint8_t> input, const std::string& dir,
                  const flow::FaultPlan& faults);

/// A folder for the daemons of this process, in memory where there is such a place.
std::string ScratchFolder();

}  // namespace sluice::fuzz
