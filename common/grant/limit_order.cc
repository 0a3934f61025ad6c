// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "common/grant/limit_order.h"

#include <vector>

#include "common/grant/fields.h"

namespace sluice {
namespace {

constexpr std::string_view kFirstLine = "sluice-limit 1";
constexpr std::string_view kWhat = "limit of a grant";

}  // namespace

std::string LimitOrderText(const LimitOrder& order) {
  std::string text = std::string(kFirstLine) + "\n";
  AppendField("limit_bytes", std::to_string(order.limit_bytes), &text);
  AppendField("instead_of", std::to_string(order.instead_of), &text);
  return text;
}

Result<LimitOrder> ParseLimitOrder(std::string_view text) {
  const Result<std::vector<Field>> fields = ParseFields(text, kFirstLine, kWhat, {});
  if (!fields.ok()) return fields.status();
  LimitOrder order;
  for (const Field& field : *fields) {
    uint64_t* const number = field.key == "limit_bytes"  ? &order.limit_bytes
                             : field.key == "instead_of" ? &order.instead_of
                                                         : nullptr;
    if (number == nullptr) {
      return BadField(kWhat, field, "allowed keys: limit_bytes, instead_of");
    }
    if (!ParseFieldNumber(field.value, number)) {
      return BadField(kWhat, field, "allowed: a number");
    }
  }
  if (fields->size() != 2) {
    return Status(StatusCode::kInvalidArgument,
                  std::string(kWhat) + ": limit_bytes and instead_of are needed");
  }
  return order;
}

uint64_t LimitUnder(const std::optional<LimitOrder>& order, uint64_t asked_bytes) {
  return order.has_value() && order->instead_of == asked_bytes ? order->limit_bytes : asked_bytes;
}

}  // namespace sluice
