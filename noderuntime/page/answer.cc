// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/page/answer.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "scheduler/policy/policies.h"

namespace sluice::page {
namespace {

using Json = nlohmann::json;

Status Bad(const std::string& text) { return Status(StatusCode::kInvalidArgument, text); }

}  // namespace

std::optional<uint32_t> ParseNumber(std::string_view text) {
  if (text.empty() || text.size() > 9) return std::nullopt;
  uint32_t number = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    number = number * 10 + static_cast<uint32_t>(c - '0');
  }
  return number;
}

std::string ServerSentEvent(const History::Message& message) {
  return std::string("event: ") + message.event + "\ndata: " + message.data + "\n\n";
}

std::string ErrorJson(const std::string& text) {
  return Json({{"error", text}}).dump(-1, ' ', false, Json::error_handler_t::replace);
}

int HttpStatus(const Status& status) {
  switch (status.code()) {
    case StatusCode::kInvalidArgument:
      return 400;
    case StatusCode::kPermissionDenied:
      return 403;
    case StatusCode::kNotFound:
      return 404;
    case StatusCode::kFailedPrecondition:
      return 409;
    case StatusCode::kResourceExhausted:
      return 429;
    default:
      return 503;
  }
}

Result<PolicyOrder> ReadPolicyOrder(const std::string& text) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return Bad("the request is no JSON object");
  PolicyOrder order;
  const Json gpu = json.value("gpu", Json(0u));
  if (!gpu.is_number_unsigned() || gpu.get<uint64_t>() > 999) return Bad("gpu: allowed: a number");
  order.gpu = gpu.get<uint32_t>();
  const auto names = scheduler::NodePolicyNames();
  const Json policy = json.value("policy", Json());
  if (policy.is_string()) order.policy = policy.get<std::string>();
  if (std::find(names.begin(), names.end(), order.policy) == names.end()) {
    std::string allowed;
    for (const auto& name : names) allowed += (allowed.empty() ? "" : ", ") + std::string(name);
    return Bad("policy: allowed: " + allowed);
  }
  const Json lanes = json.value("lanes", Json(0u));
  if (!lanes.is_number_unsigned() || lanes.get<uint64_t>() > kMaxLanes) {
    return Bad("lanes: allowed: 1 to " + std::to_string(kMaxLanes) + ", or 0 for as many as now");
  }
  order.lanes = lanes.get<uint32_t>();
  return order;
}

}  // namespace sluice::page
