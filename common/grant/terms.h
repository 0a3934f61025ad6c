// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/status.h"

namespace sluice {

/// On what terms a container has its grant: what its pod asks for beyond the granules, found and
/// checked by the device plugin, read by the node's daemon. They may change while it runs, the
/// grant may not. A plain value.
struct GrantTerms {
  std::string job;           // NAMESPACE/POD/CONTAINER
  std::string pod;           // its UID: nobody else's processes may use the grant
  uint64_t limit_bytes = 0;  // most that it may hold; at least what was granted
  int32_t priority = 0;      // higher goes first
  std::string group;         // only jobs of one group share memory; empty: any
  /// Why nobody may use the grant, for people, possibly in several lines; empty: its container may.
  std::string refusal;
  /// Most of its memory that may be moved to host memory; nothing: as much as there is for all.
  std::optional<uint64_t> host_memory_bytes = std::nullopt;
  /// False: its programs are to have the GPU as it is, without the library. What is beside it then
  /// is the daemon's to say.
  bool inject = true;
  friend bool operator==(const GrantTerms&, const GrantTerms&) = default;
};

/// Lines `key = value` behind the line "sluice-terms 1"; `refusal` is a line for each of its own.
/// What a pod did not ask for has no line: a daemon of an earlier version refuses only terms that
/// it could not keep.
std::string TermsText(const GrantTerms& terms);

/// kInvalidArgument: as ParseGrant.
Result<GrantTerms> ParseTerms(std::string_view text);

}  // namespace sluice
