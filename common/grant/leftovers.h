// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <chrono>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "common/grant/store.h"

namespace sluice {

/// So long after its last change something without a record may be of a grant that is being made,
/// whose folder is there before its record is.
inline constexpr std::chrono::minutes kLeftoverAge{5};

/// What a store has in the name of a grant, beside the record itself.
struct GrantTrace {
  std::string path;
  std::string id;
  std::filesystem::file_time_type changed;
};

/// Those of which no record is there and that are old enough. Ids never come again.
std::vector<std::string> Leftovers(const std::vector<GrantTrace>& traces,
                                   const std::set<std::string>& records,
                                   std::filesystem::file_time_type now);

/// Removes what is left over of grants that were half made or half removed by somebody who was
/// killed in it, or that the daemon wrote of one that had just ended. Returns how much. Errors are
/// the system's; what could be removed is.
Result<size_t> SweepLeftovers(const GrantStore& store, std::filesystem::file_time_type now);

}  // namespace sluice
