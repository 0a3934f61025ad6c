// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "common/grant/record.h"

#include <algorithm>

#include "common/grant/fields.h"

namespace sluice {
namespace {

constexpr std::string_view kFirstLine = "sluice-grant 1";
constexpr std::string_view kWhat = "grant record";
constexpr size_t kIdDigits = 32;
constexpr size_t kMaxText = 128;  // of a UUID or a device id

bool IsName(std::string_view text) {
  return !text.empty() && text.size() <= kMaxText &&
         std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < '\x7f'; });
}

/// What is allowed where the value is not, or nothing.
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
    return ParseFieldNumber(value, &grant->bytes) && grant->bytes > 0 ? ""
                                                                      : "allowed: a number from 1";
  }
  if (key == "created_ns") {
    return ParseFieldNumber(value, &grant->created_ns) ? "" : "allowed: a number";
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
  std::string text = std::string(kFirstLine) + "\n";
  AppendField("id", grant.id, &text);
  AppendField("gpu", grant.gpu, &text);
  AppendField("bytes", std::to_string(grant.bytes), &text);
  AppendField("created_ns", std::to_string(grant.created_ns), &text);
  for (const std::string& device : grant.devices) AppendField("device", device, &text);
  return text;
}

Result<GrantRecord> ParseGrant(std::string_view text) {
  const Result<std::vector<Field>> fields = ParseFields(text, kFirstLine, kWhat, {"device"});
  if (!fields.ok()) return fields.status();
  GrantRecord grant;
  for (const Field& field : *fields) {
    const std::string allowed = Set(&grant, field.key, field.value);
    if (!allowed.empty()) return BadField(kWhat, field, allowed);
  }
  for (const char* key : {"id", "gpu", "bytes", "created_ns", "device"}) {
    const bool there = std::any_of(fields->begin(), fields->end(),
                                   [key](const Field& field) { return field.key == key; });
    if (!there) {
      return Status(StatusCode::kInvalidArgument, std::string(kWhat) + ": " + key + " is missing");
    }
  }
  return grant;
}

}  // namespace sluice
