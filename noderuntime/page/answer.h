// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/status.h"
#include "noderuntime/page/history.h"

namespace sluice::page {

/// The value of a whole number in a query or a path: at most nine digits, nothing else. Empty:
/// none.
std::optional<uint32_t> ParseNumber(std::string_view text);

/// One server-sent event: "event: ...", "data: ..." and an empty line. JSON has no line breaks.
std::string ServerSentEvent(const History::Message& message);

/// {"error": text}
std::string ErrorJson(const std::string& text);

/// The status of HTTP for an error.
int HttpStatus(const Status& status);

/// Most that may be asked for, as `sluice policy` has it.
inline constexpr uint32_t kMaxLanes = 64;

/// What POST /api/policy asks for.
struct PolicyOrder {
  uint32_t gpu = 0;
  std::string policy;
  uint32_t lanes = 0;  // 0: as many as now
};
/// kInvalidArgument: the field and what is allowed.
Result<PolicyOrder> ReadPolicyOrder(const std::string& json);

}  // namespace sluice::page
