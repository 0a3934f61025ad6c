// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <string_view>

#include "common/status.h"
#include "scheduler/trace/snapshot/values.h"

namespace sluice::scheduler::trace {

/// What a dump may cost: some 40 bytes for a value, 4 for each place on the stack, in a container
/// or in the memo, which has no more of them than the dump has bytes.
struct PickleLimits {
  size_t values = size_t{1} << 24;
  size_t stack = size_t{1} << 20;
  size_t depth = 64;  // containers in containers, at most 254
};

struct Pickle {
  Values values;
  ValueId root = 0;
};

/// Reads plain data (None, bool, int, float, str, bytes, list, tuple, dict) from a pickle of
/// protocol 0 to 5, as Python's pickle module and PyTorch's own writer make it. Nothing in it is
/// looked up or called: an opcode that would do so is refused. `bytes` must outlive the result and
/// is all of the file. Time is linear in it. A fault is kInvalidArgument and names the opcode where
/// it stands: "byte 12: GLOBAL: ...".
Result<Pickle> ReadPickle(std::string_view bytes, const PickleLimits& limits = {});

}  // namespace sluice::scheduler::trace
