// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/status.h"

namespace sluice {

/// What a container was given of a GPU: written by the device plugin, read by the node's daemon.
/// Whoever reaches the socket of this grant may use it and no other; the record says how much it is
/// worth and lies where no container sees it. A plain value.
struct GrantRecord {
  std::string id;                    // 32 hexadecimal digits; names the folder of its socket
  std::string gpu;                   // UUID as NVML has it
  uint64_t bytes = 0;                // of its memory
  uint64_t created_ns = 0;           // since 1970
  std::vector<std::string> devices;  // kubelet's ids of the granules
  friend bool operator==(const GrantRecord&, const GrantRecord&) = default;
};

/// One `key = value` per line behind the line "sluice-grant 1", a `device` line for each id.
std::string GrantText(const GrantRecord& grant);

/// kInvalidArgument: another format or version, an unknown key, a key twice (but `device`), a value
/// that is not allowed, or a key that is missing; the text names line and key.
Result<GrantRecord> ParseGrant(std::string_view text);

/// Whether `id` can name a grant: nothing else is ever made part of a path.
bool IsGrantId(std::string_view id);

}  // namespace sluice
