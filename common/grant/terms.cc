// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "common/grant/terms.h"

#include <algorithm>
#include <charconv>
#include <vector>

#include "common/grant/fields.h"

namespace sluice {
namespace {

constexpr std::string_view kFirstLine = "sluice-terms 1";
constexpr std::string_view kWhat = "terms of a grant";

std::string Set(GrantTerms* terms, std::string_view key, std::string_view value) {
  if (key == "job") {
    terms->job = value;
    return "";
  }
  if (key == "pod") {
    terms->pod = value;
    return "";
  }
  if (key == "limit_bytes") {
    return ParseFieldNumber(value, &terms->limit_bytes) ? "" : "allowed: a number";
  }
  if (key == "priority") {
    const auto [end, error] =
        std::from_chars(value.data(), value.data() + value.size(), terms->priority);
    const bool whole = error == std::errc() && end == value.data() + value.size();
    return whole ? "" : "allowed: a whole number";
  }
  if (key == "group") {
    terms->group = value;
    return "";
  }
  if (key == "refusal") {
    if (!terms->refusal.empty()) terms->refusal += "\n";
    terms->refusal += value;
    return "";
  }
  if (key == "host_memory_bytes") {
    return ParseFieldNumber(value, &terms->host_memory_bytes.emplace()) ? "" : "allowed: a number";
  }
  if (key == "inject") {
    terms->inject = value == "on";
    return terms->inject || value == "off" ? "" : "allowed: on, off";
  }
  return "allowed keys: job, pod, limit_bytes, priority, group, refusal, host_memory_bytes, inject";
}

}  // namespace

std::string TermsText(const GrantTerms& terms) {
  std::string text = std::string(kFirstLine) + "\n";
  AppendField("job", terms.job, &text);
  AppendField("pod", terms.pod, &text);
  AppendField("limit_bytes", std::to_string(terms.limit_bytes), &text);
  AppendField("priority", std::to_string(terms.priority), &text);
  AppendField("group", terms.group, &text);
  if (terms.host_memory_bytes.has_value()) {
    AppendField("host_memory_bytes", std::to_string(*terms.host_memory_bytes), &text);
  }
  if (!terms.inject) AppendField("inject", "off", &text);
  std::string_view rest = terms.refusal;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    AppendField("refusal", line, &text);
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
  }
  return text;
}

Result<GrantTerms> ParseTerms(std::string_view text) {
  const Result<std::vector<Field>> fields = ParseFields(text, kFirstLine, kWhat, {"refusal"});
  if (!fields.ok()) return fields.status();
  GrantTerms terms;
  for (const Field& field : *fields) {
    const std::string allowed = Set(&terms, field.key, field.value);
    if (!allowed.empty()) return BadField(kWhat, field, allowed);
  }
  for (const char* key : {"job", "pod", "limit_bytes", "priority", "group"}) {
    const bool there = std::any_of(fields->begin(), fields->end(),
                                   [key](const Field& field) { return field.key == key; });
    if (!there) {
      return Status(StatusCode::kInvalidArgument, std::string(kWhat) + ": " + key + " is missing");
    }
  }
  return terms;
}

}  // namespace sluice
