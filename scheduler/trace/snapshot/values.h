// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::scheduler::trace {

/// kLargeInteger does not fit into 64 bits; its value is not kept.
enum class ValueKind : uint8_t {
  kNone,
  kBool,
  kInteger,
  kLargeInteger,
  kFloat,
  kText,
  kBytes,
  kList,
  kTuple,
  kDict
};

/// "list", "dict", ...: for messages, in Python's words.
std::string_view ValueKindName(ValueKind kind);

using ValueId = uint32_t;

/// Plain Python data in one arena. Values refer to each other by number, may be shared, and a
/// hostile dump may make one contain itself: so walk them by the shape that is expected, never to
/// the end. Texts point into the dump that they were read from.
class Values {
 public:
  size_t size() const { return nodes_.size(); }
  ValueKind kind(ValueId id) const { return nodes_[id].kind; }
  /// nullopt where the value is of another kind (a bool is no integer).
  std::optional<bool> Bool(ValueId id) const;
  std::optional<int64_t> Integer(ValueId id) const;
  std::optional<double> Float(ValueId id) const;
  /// Of a text (UTF-8, not checked) or of bytes.
  std::optional<std::string_view> Text(ValueId id) const;
  /// The elements of a list or tuple; key, value, key, value of a dict; else nothing.
  std::span<const ValueId> Items(ValueId id) const;
  /// The value under a text key of a dict, the last one if it was set twice. Looks at every key.
  std::optional<ValueId> Get(ValueId dict, std::string_view key) const;
  /// Containers around the deepest thing inside, as far as it was there when it was added.
  size_t depth(ValueId id) const { return nodes_[id].depth; }

  ValueId AddNone() { return Add(ValueKind::kNone, 0); }
  ValueId AddBool(bool value) { return Add(ValueKind::kBool, value ? 1 : 0); }
  ValueId AddInteger(int64_t value) { return Add(ValueKind::kInteger, value); }
  ValueId AddLargeInteger() { return Add(ValueKind::kLargeInteger, 0); }
  ValueId AddFloat(double value);
  /// kText or kBytes; `text` must outlive this.
  ValueId AddText(ValueKind kind, std::string_view text);
  ValueId AddOwnText(std::string text);
  /// kList, kTuple or kDict.
  ValueId AddContainer(ValueKind kind, std::span<const ValueId> items);
  void Append(ValueId container, std::span<const ValueId> items);

 private:
  struct Node {
    ValueKind kind = ValueKind::kNone;
    uint8_t depth = 0;
    int64_t value = 0;  // itself, the bits of a float, or a place in texts_ or containers_
  };

  ValueId Add(ValueKind kind, int64_t value);

  std::vector<Node> nodes_;
  std::vector<std::string_view> texts_;
  std::vector<std::vector<ValueId>> containers_;
  std::deque<std::string> own_texts_;  // a deque: its strings stay where they are
};

}  // namespace sluice::scheduler::trace
