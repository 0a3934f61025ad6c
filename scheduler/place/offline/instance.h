// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/status.h"
#include "scheduler/place/offline/buffers.h"

namespace sluice::scheduler {

/// Buffers to be placed and what they are called, as in MiniMalloc's tables: comma-separated, a
/// heading that names the columns id, lower, upper and size in any order, one buffer a line. Names
/// are kept as they are; numbers are decimal, at most 2^53.
struct Instance {
  std::vector<std::string> ids;
  std::vector<Buffer> buffers;  // checked: CheckBuffers has nothing against them
};

/// A fault is kInvalidArgument and one line: "line 3: size: <what is wrong, what is allowed>". Each
/// line ends in a line feed. A column `offset`, as WriteInstance adds, is passed over.
Result<Instance> ParseInstance(std::string_view text);

/// The table with one more column, `offset`: one for each buffer.
std::string WriteInstance(const Instance& instance, const Offsets& offsets);

}  // namespace sluice::scheduler
