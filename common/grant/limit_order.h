// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/status.h"

namespace sluice {

/// An operator's limit for one grant. It stands above what the pod asks for until the pod asks for
/// something else: who spoke last is right. A plain value.
struct LimitOrder {
  uint64_t limit_bytes = 0;
  uint64_t instead_of = 0;  // what the pod asked for at that time, in bytes
  friend bool operator==(const LimitOrder&, const LimitOrder&) = default;
};

/// Lines `key = value` behind the line "sluice-limit 1".
std::string LimitOrderText(const LimitOrder& order);

/// kInvalidArgument: as ParseGrant.
Result<LimitOrder> ParseLimitOrder(std::string_view text);

/// Which limit a pod has that asks for `asked_bytes`.
uint64_t LimitUnder(const std::optional<LimitOrder>& order, uint64_t asked_bytes);

}  // namespace sluice
