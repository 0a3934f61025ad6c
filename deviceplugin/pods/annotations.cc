// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "deviceplugin/pods/annotations.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <string_view>

#include "common/bytes.h"
#include "common/printable.h"
#include "common/quantity.h"

namespace sluice::pods {
namespace {

constexpr std::string_view kOurs = "sluice.dev/";
constexpr std::string_view kTheirs = "nvidia.com/container.";
constexpr std::string_view kOfContainer = "container.";
constexpr std::string_view kRequest = ".gpu-memory.request";
constexpr std::string_view kLimit = ".gpu-memory.limit";
constexpr std::string_view kKeys =
    "class, host-memory, inject, memory-limit, priority, share-group";
constexpr int32_t kMostPriority = 1000;
constexpr size_t kMaxShown = 64;

bool IsLabel(std::string_view text) {
  const auto inner = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  };
  return !text.empty() && text.size() <= 63 && std::all_of(text.begin(), text.end(), inner) &&
         text.front() != '-' && text.back() != '-';
}

bool IsKey(std::string_view key) {
  return key == "class" || key == "host-memory" || key == "inject" || key == "memory-limit" ||
         key == "priority" || key == "share-group";
}

/// A value and the annotation that it is from.
struct Value {
  std::string field;
  std::string text;
};

class Reader {
 public:
  Reader(const Annotations& annotations, const std::vector<std::string>& containers,
         const Container& container)
      : containers_(containers), container_(container) {
    for (const auto& [field, text] : annotations) Sort(field, text);
  }

  Result<Terms> Read() {
    Terms terms;
    terms.limit_bytes = container_.granted_bytes;
    const std::optional<uint64_t> limit = TakeLimit();
    terms.host_memory_bytes = TakeBytes("host-memory");
    Take("priority", "-1000 to 1000", [&](const std::string& text) {
      const auto [end, error] =
          std::from_chars(text.data(), text.data() + text.size(), terms.priority);
      return error == std::errc() && end == text.data() + text.size() &&
             terms.priority >= -kMostPriority && terms.priority <= kMostPriority;
    });
    Take("share-group", "a DNS label (a-z, 0-9 and -, at most 63 characters)",
         [&](const std::string& text) {
           terms.share_group = text;
           return IsLabel(text);
         });
    Take("inject", "true, false", [&](const std::string& text) {
      terms.inject = text == "true";
      return terms.inject || text == "false";
    });
    if (limit.has_value()) terms.limit_bytes = *limit;
    terms.sharing = TakeClass(terms.limit_bytes);
    if (errors_.empty()) return terms;
    std::string all;
    for (const std::string& error : errors_) all += (all.empty() ? "" : "\n") + error;
    return Status(StatusCode::kInvalidArgument, all);
  }

 private:
  /// Keeps what is about this container, and names what is about nothing.
  void Sort(const std::string& field, const std::string& text) {
    std::string_view rest = field;
    if (rest.starts_with(kTheirs)) {
      rest.remove_prefix(kTheirs.size());
      for (const auto& [suffix, key] :
           {std::pair(kRequest, "request"), std::pair(kLimit, "limit")}) {
        if (!rest.ends_with(suffix)) continue;
        if (OfThis(field, text, rest.substr(0, rest.size() - suffix.size())))
          theirs_[key] = {field, text};
        return;
      }
      return;  // NVIDIA's business
    }
    if (!rest.starts_with(kOurs)) return;
    rest.remove_prefix(kOurs.size());
    std::string_view key = rest;
    if (rest.starts_with(kOfContainer)) {
      rest.remove_prefix(kOfContainer.size());
      const size_t dot = rest.rfind('.');
      key = dot == std::string_view::npos ? "" : rest.substr(dot + 1);
      if (!IsKey(key)) return Unknown(field, text);
      if (OfThis(field, text, rest.substr(0, dot))) own_[std::string(key)] = {field, text};
      return;
    }
    if (!IsKey(key)) return Unknown(field, text);
    own_.emplace(key, Value{field, text});  // where the container has none of its own
  }
  void Unknown(const std::string& field, const std::string& text) {
    errors_.insert(field + " " + Quoted(text) + ": allowed keys behind " + std::string(kOurs) +
                   " and behind " + std::string(kOurs) + "container.NAME.: " + std::string(kKeys));
  }
  /// Says that there is no such container, where there is none.
  bool OfThis(const std::string& field, const std::string& text, std::string_view name) {
    if (name == container_.name) return true;
    if (std::find(containers_.begin(), containers_.end(), name) == containers_.end()) {
      std::string names;
      for (const std::string& each : containers_) names += (names.empty() ? "" : ", ") + each;
      errors_.insert(field + " " + Quoted(text) + ": the pod has no container " + Quoted(name) +
                     "; allowed: " + names);
    }
    return false;
  }

  const Value* Find(const std::string& key) const {
    const auto own = own_.find(key);
    return own == own_.end() ? nullptr : &own->second;
  }
  template <typename Parse>
  void Take(const std::string& key, const std::string& allowed, Parse parse) {
    const Value* value = Find(key);
    if (value == nullptr || parse(value->text)) return;
    errors_.insert(value->field + " " + Quoted(value->text) + ": allowed: " + allowed);
  }
  std::optional<uint64_t> Bytes(const Value& value) {
    const Result<uint64_t> bytes = ParseQuantity(value.text, value.field);
    if (bytes.ok()) return *bytes;
    errors_.insert(bytes.status().message());
    return std::nullopt;
  }
  std::optional<uint64_t> TakeBytes(const std::string& key) {
    const Value* value = Find(key);
    return value == nullptr ? std::nullopt : Bytes(*value);
  }

  std::optional<uint64_t> TakeLimit() {
    std::optional<uint64_t> limit = TakeBytes("memory-limit");
    const std::string granted = "what was granted (" + FormatBytes(container_.granted_bytes) + ")";
    if (const auto theirs = theirs_.find("request"); theirs != theirs_.end()) {
      const std::optional<uint64_t> request = Bytes(theirs->second);
      if (request.has_value() && *request != container_.granted_bytes) {
        errors_.insert(theirs->second.field + " " + Quoted(theirs->second.text) +
                       ": allowed: " + granted + "; ask for it by the resource");
      }
    }
    const Value* from = Find("memory-limit");
    if (const auto theirs = theirs_.find("limit"); theirs != theirs_.end()) {
      const std::optional<uint64_t> other = Bytes(theirs->second);
      if (limit.has_value() && other.has_value() && *limit != *other) {
        errors_.insert(theirs->second.field + " " + Quoted(theirs->second.text) +
                       ": allowed: what " + from->field + " says (" + Quoted(from->text) + ")");
      } else if (!limit.has_value() && from == nullptr) {
        limit = other;
        from = &theirs->second;
      }
    }
    if (limit.has_value() && *limit < container_.granted_bytes) {
      errors_.insert(from->field + " " + Quoted(from->text) + ": allowed: from " + granted);
    }
    return limit;
  }

  Class TakeClass(uint64_t limit) {
    const bool more = limit > container_.granted_bytes;
    Class sharing = more ? Class::kBurst : Class::kGuaranteed;
    Take("class", "guaranteed, burst", [&](const std::string& text) {
      if (text == "burst") sharing = Class::kBurst;
      if (text == "guaranteed") sharing = Class::kGuaranteed;
      return text == "burst" || text == "guaranteed";
    });
    const Value* value = Find("class");
    if (value != nullptr && value->text == "guaranteed" && more) {
      errors_.insert(value->field + " 'guaranteed': allowed: burst, because the limit of " +
                     FormatBytes(limit) + " is above what was granted (" +
                     FormatBytes(container_.granted_bytes) + ")");
    }
    return sharing;
  }

  const std::vector<std::string>& containers_;
  const Container& container_;
  std::map<std::string, Value> own_;     // by key: the container's, else the pod's
  std::map<std::string, Value> theirs_;  // NVIDIA's
  std::set<std::string> errors_;
};

}  // namespace

std::string Quoted(std::string_view text) {
  return "'" + Printable(CutText(text, kMaxShown)) + "'";
}

std::optional<Field> FieldOf(std::string_view annotation) {
  if (!annotation.starts_with(kOurs)) return std::nullopt;
  std::string_view key = annotation.substr(kOurs.size());
  std::string_view container;
  if (key.starts_with(kOfContainer)) {
    const std::string_view rest = key.substr(kOfContainer.size());
    const size_t dot = rest.rfind('.');
    if (dot == std::string_view::npos || dot == 0) return std::nullopt;
    container = rest.substr(0, dot);
    key = rest.substr(dot + 1);
  }
  if (!IsKey(key)) return std::nullopt;
  return Field{std::string(container), std::string(key)};
}

Result<Terms> TermsOf(const Annotations& annotations, const std::vector<std::string>& containers,
                      const Container& container) {
  return Reader(annotations, containers, container).Read();
}

}  // namespace sluice::pods
