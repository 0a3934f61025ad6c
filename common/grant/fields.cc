// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "common/grant/fields.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "common/printable.h"

namespace sluice {
namespace {

constexpr size_t kMaxShown = 128;

std::string Quoted(std::string_view text) {
  return "'" + Printable(CutText(text, kMaxShown)) + "'";
}

Status Bad(std::string_view what, size_t line, const std::string& text) {
  return Status(StatusCode::kInvalidArgument,
                std::string(what) + ", line " + std::to_string(line) + ": " + text);
}

}  // namespace

Result<std::vector<Field>> ParseFields(std::string_view text, std::string_view first_line,
                                       std::string_view what,
                                       const std::vector<std::string_view>& repeated) {
  std::vector<Field> fields;
  std::set<std::string_view> seen;
  for (size_t number = 1; !text.empty(); ++number) {
    const size_t end = text.find('\n');
    // A record that was cut off must not pass for one with fewer lines.
    if (end == std::string_view::npos) return Bad(what, number, "it has no end");
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end + 1);
    if (number == 1) {
      if (line == first_line) continue;
      return Bad(what, 1, Quoted(line) + ": allowed: " + Quoted(first_line));
    }
    const size_t equals = line.find(" = ");
    if (equals == std::string_view::npos)
      return Bad(what, number, Quoted(line) + ": allowed: key = value");
    const Field field = {number, line.substr(0, equals), line.substr(equals + 3)};
    const bool again = std::find(repeated.begin(), repeated.end(), field.key) != repeated.end();
    if (!seen.insert(field.key).second && !again)
      return Bad(what, number, std::string(field.key) + " comes twice");
    fields.push_back(field);
  }
  return fields;
}

Status BadField(std::string_view what, const Field& field, const std::string& allowed) {
  return Bad(what, field.line, Quoted(field.key) + " " + Quoted(field.value) + ": " + allowed);
}

bool ParseFieldNumber(std::string_view text, uint64_t* number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
  return error == std::errc() && end == text.data() + text.size();
}

void AppendField(std::string_view key, std::string_view value, std::string* text) {
  text->append(key).append(" = ").append(value).append("\n");
}

}  // namespace sluice
