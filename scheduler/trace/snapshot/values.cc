// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/trace/snapshot/values.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

namespace sluice::scheduler::trace {

namespace {

bool IsContainer(ValueKind kind) {
  return kind == ValueKind::kList || kind == ValueKind::kTuple || kind == ValueKind::kDict;
}

}  // namespace

std::string_view ValueKindName(ValueKind kind) {
  constexpr std::array<std::string_view, 10> kNames = {
      "None", "bool", "int", "large int", "float", "str", "bytes", "list", "tuple", "dict"};
  return kNames[static_cast<size_t>(kind)];
}

std::optional<bool> Values::Bool(ValueId id) const {
  if (kind(id) != ValueKind::kBool) return std::nullopt;
  return nodes_[id].value != 0;
}

std::optional<int64_t> Values::Integer(ValueId id) const {
  if (kind(id) != ValueKind::kInteger) return std::nullopt;
  return nodes_[id].value;
}

std::optional<double> Values::Float(ValueId id) const {
  if (kind(id) != ValueKind::kFloat) return std::nullopt;
  return std::bit_cast<double>(nodes_[id].value);
}

std::optional<std::string_view> Values::Text(ValueId id) const {
  if (kind(id) != ValueKind::kText && kind(id) != ValueKind::kBytes) return std::nullopt;
  return texts_[static_cast<size_t>(nodes_[id].value)];
}

std::span<const ValueId> Values::Items(ValueId id) const {
  if (!IsContainer(kind(id))) return {};
  return containers_[static_cast<size_t>(nodes_[id].value)];
}

std::optional<ValueId> Values::Get(ValueId dict, std::string_view key) const {
  if (kind(dict) != ValueKind::kDict) return std::nullopt;
  const std::span<const ValueId> items = Items(dict);
  for (size_t i = items.size(); i >= 2; i -= 2) {
    const ValueId name = items[i - 2];
    if (kind(name) == ValueKind::kText && Text(name) == key) return items[i - 1];
  }
  return std::nullopt;
}

ValueId Values::Add(ValueKind kind, int64_t value) {
  nodes_.push_back({kind, 0, value});
  return static_cast<ValueId>(nodes_.size() - 1);
}

ValueId Values::AddFloat(double value) {
  return Add(ValueKind::kFloat, std::bit_cast<int64_t>(value));
}

ValueId Values::AddText(ValueKind kind, std::string_view text) {
  texts_.push_back(text);
  return Add(kind, static_cast<int64_t>(texts_.size() - 1));
}

ValueId Values::AddOwnText(std::string text) {
  return AddText(ValueKind::kText, own_texts_.emplace_back(std::move(text)));
}

ValueId Values::AddContainer(ValueKind kind, std::span<const ValueId> items) {
  containers_.emplace_back();
  const ValueId id = Add(kind, static_cast<int64_t>(containers_.size() - 1));
  nodes_[id].depth = 1;
  Append(id, items);
  return id;
}

void Values::Append(ValueId container, std::span<const ValueId> items) {
  Node& node = nodes_[container];
  std::vector<ValueId>& into = containers_[static_cast<size_t>(node.value)];
  into.insert(into.end(), items.begin(), items.end());
  for (const ValueId item : items) {
    // Whoever sets a limit sees it exceeded long before this stops counting.
    const int deeper = std::min(nodes_[item].depth + 1, 255);
    node.depth = std::max(node.depth, static_cast<uint8_t>(deeper));
  }
}

}  // namespace sluice::scheduler::trace
