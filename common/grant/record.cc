// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "common/grant/record.h"

#include <algorithm>
#include <charconv>
#include <set>

namespace sluice {
namespace {

constexpr std::string_view kFirstLine = "sluice-grant 1";
constexpr size_t kIdDigits = 32;
constexpr size_t kMaxText = 128;  // of a UUID or a device id

Status Bad(size_t line, const std::string& text) {
  return Status(StatusCode::kInvalidArgument,
                "grant record, line " + std::to_string(line) + ": " + text);
}

bool IsName(std::string_view text) {
  return !text.empty() && text.size() <= kMaxText &&
         std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < '\x7f'; });
}

bool ParseNumber(std::string_view text, uint64_t* number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
  return error == std::errc() && end == text.data() + text.size();
}

std::string Quoted(std::string_view text) {
  return "'" + std::string(text.substr(0, kMaxText)) + "'";
}

/// The text of what is wrong with the value, or nothing.
std::string Set(GrantRecord* grant, std::string_view key, std::string_view value) {
  if (key == "id") {
    grant->id = value;
    return IsGrantId(value) ? "" : "allowed: 32 hexadecimal digits";
  }
  if (key == "gpu") {
    grant->gpu = value;
    return IsName(value) ? "" : "allowed: a UUID as NVML writes it";
  }
  if (key == "device") {
    grant->devices.emplace_back(value);
    return IsName(value) ? "" : "allowed: a device id";
  }
  if (key == "bytes") {
    return ParseNumber(value, &grant->bytes) && grant->bytes > 0 ? "" : "allowed: a number from 1";
  }
  if (key == "created_ns") {
    return ParseNumber(value, &grant->created_ns) ? "" : "allowed: a number";
  }
  return "allowed keys: id, gpu, bytes, created_ns, device";
}

}  // namespace

bool IsGrantId(std::string_view id) {
  return id.size() == kIdDigits && std::all_of(id.begin(), id.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

std::string GrantText(const GrantRecord& grant) {
  std::string text(kFirstLine);
  const auto line = [&text](std::string_view key, const std::string& value) {
    text += "\n" + std::string(key) + " = " + value;
  };
  line("id", grant.id);
  line("gpu", grant.gpu);
  line("bytes", std::to_string(grant.bytes));
  line("created_ns", std::to_string(grant.created_ns));
  for (const std::string& device : grant.devices) line("device", device);
  return text + "\n";
}

Result<GrantRecord> ParseGrant(std::string_view text) {
  GrantRecord grant;
  std::set<std::string, std::less<>> seen;
  for (size_t number = 1; !text.empty(); ++number) {
    const size_t end = text.find('\n');
    // A record that was cut off must not pass for one with fewer devices.
    if (end == std::string_view::npos) return Bad(number, "it has no end");
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end + 1);
    if (number == 1) {
      if (line != kFirstLine) return Bad(1, Quoted(line) + ": allowed: " + Quoted(kFirstLine));
      continue;
    }
    const size_t equals = line.find(" = ");
    if (equals == std::string_view::npos)
      return Bad(number, Quoted(line) + ": allowed: key = value");
    const std::string_view key = line.substr(0, equals);
    const std::string_view value = line.substr(equals + 3);
    if (!seen.emplace(key).second && key != "device") {
      return Bad(number, std::string(key) + " comes twice");
    }
    if (const std::string wrong = Set(&grant, key, value); !wrong.empty()) {
      return Bad(number, Quoted(key) + " " + Quoted(value) + ": " + wrong);
    }
  }
  for (const char* key : {"id", "gpu", "bytes", "created_ns", "device"}) {
    if (!seen.contains(key)) {
      return Status(StatusCode::kInvalidArgument,
                    "grant record: " + std::string(key) + " is missing");
    }
  }
  return grant;
}

}  // namespace sluice
