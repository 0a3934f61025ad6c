// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/eventlog/record_json.h"

#include <cerrno>
#include <cstdio>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "common/printable.h"

namespace sluice::eventlog {
namespace {

using nlohmann::json;
using scheduler::Record;

// Written by hand: the daemon writes a line for every grant, and building a tree for it costs more
// than the grant. Names come from anywhere and need not be UTF-8, which JSON demands.
void AppendText(std::string& line, std::string_view key, std::string_view text) {
  if (text.empty()) return;
  line.append(",\"").append(key).append("\":\"");
  while (!text.empty()) {
    const Character first = FirstCharacter(text);
    if (text.front() == '"' || text.front() == '\\') line += '\\';
    if (first.shown) {
      line += text.substr(0, first.bytes);
    } else {
      // Beyond 16 bits JSON wants two halves.
      const bool wide = first.code > 0xffff;
      const unsigned code = !first.utf8 ? 0xfffd : wide ? 0xd7c0 + (first.code >> 10) : first.code;
      char escape[16];
      std::snprintf(escape, sizeof escape, "\\u%04x", code);
      line += escape;
      if (wide) {
        std::snprintf(escape, sizeof escape, "\\u%04x", 0xdc00 + (first.code & 0x3ff));
        line += escape;
      }
    }
    text.remove_prefix(first.bytes);
  }
  line += '"';
}

void AppendNumber(std::string& line, std::string_view key, uint64_t value, uint64_t standard = 0) {
  if (value == standard) return;
  line.append(",\"").append(key).append("\":").append(std::to_string(value));
}

void AppendFlag(std::string& line, std::string_view key, bool value) {
  if (value) line.append(",\"").append(key).append("\":true");
}

void AppendExtents(std::string& line, std::string_view key, const scheduler::Extents& extents) {
  if (extents.empty()) return;
  line.append(",\"").append(key).append("\":[");
  for (const scheduler::Extent& extent : extents) {
    if (line.back() != '[') line += ',';
    line.append(1, '[').append(std::to_string(extent.offset)).append(1, ',');
    line.append(std::to_string(extent.length)).append(1, ']');
  }
  line += ']';
}

Status Bad(const std::string& key, const std::string& allowed) {
  return Status(StatusCode::kInvalidArgument, "'" + key + "' must be " + allowed);
}

template <typename Number>
Status TakeNumber(const std::string& key, const json& value, Number& into) {
  constexpr uint64_t kMost = std::numeric_limits<Number>::max();
  if (!value.is_number_unsigned() || value.get<uint64_t>() > kMost) {
    return Bad(key, "a whole number from 0 to " + std::to_string(kMost));
  }
  into = value.get<Number>();
  return {};
}

Status TakeFlag(const std::string& key, const json& value, bool& into) {
  if (!value.is_boolean()) return Bad(key, "true or false");
  into = value.get<bool>();
  return {};
}

Status TakeText(const std::string& key, const json& value, std::string& into) {
  if (!value.is_string()) return Bad(key, "a text");
  // Whoever reads a log shows it to people, and it may be anybody's.
  into = Printable(value.get<std::string>());
  return {};
}

Status TakeExtents(const std::string& key, const json& value, scheduler::Extents& into) {
  const Status bad = Bad(key, "a list of [offset, length] in lease units with a length from 1");
  if (!value.is_array()) return bad;
  for (const json& item : value) {
    if (!item.is_array() || item.size() != 2) return bad;
    scheduler::Extent extent;
    if (!TakeNumber(key, item[0], extent.offset).ok()) return bad;
    if (!TakeNumber(key, item[1], extent.length).ok()) return bad;
    // The end must be a number of units too, or sums over extents would wrap.
    if (extent.length == 0 ||
        extent.offset > std::numeric_limits<uint32_t>::max() - extent.length) {
      return bad;
    }
    into.push_back(extent);
  }
  return {};
}

Status TakeEvent(const std::string& key, const json& value, scheduler::EventKind& into) {
  const auto kind = value.is_string() ? scheduler::ParseEventName(value.get<std::string>())
                                      : std::optional<scheduler::EventKind>();
  if (!kind)
    return Bad(key, "the name of an event (docs/design/runtime.md, 5), not " + value.dump());
  into = *kind;
  return {};
}

Status TakeField(const std::string& key, const json& value, Record& record) {
  if (key == "t_ns") return TakeNumber(key, value, record.t_ns);
  if (key == "event") return TakeEvent(key, value, record.event);
  if (key == "job") return TakeNumber(key, value, record.job);
  if (key == "name") return TakeText(key, value, record.name);
  if (key == "policy") return TakeText(key, value, record.policy);
  if (key == "text") return TakeText(key, value, record.text);
  if (key == "reason") return TakeText(key, value, record.reason);
  if (key == "unit_bytes") return TakeNumber(key, value, record.unit_bytes);
  if (key == "bytes") return TakeNumber(key, value, record.bytes);
  if (key == "units") return TakeNumber(key, value, record.units);
  if (key == "contiguous") return TakeNumber(key, value, record.contiguous);
  if (key == "request") return TakeNumber(key, value, record.request);
  if (key == "limit") return TakeNumber(key, value, record.limit);
  if (key == "claim") return TakeNumber(key, value, record.claim);
  if (key == "waives") return TakeNumber(key, value, record.waives);
  if (key == "piece") return TakeNumber(key, value, record.piece);
  if (key == "gate") return TakeNumber(key, value, record.gate);
  if (key == "iteration") return TakeNumber(key, value, record.iteration);
  if (key == "release") return TakeNumber(key, value, record.release);
  if (key == "returns") return TakeFlag(key, value, record.returns);
  if (key == "profiled") return TakeFlag(key, value, record.profiled);
  if (key == "drained") return TakeFlag(key, value, record.drained);
  if (key == "sums_only") return TakeFlag(key, value, record.sums_only);
  if (key == "settled") return TakeFlag(key, value, record.settled);
  if (key == "collective") return TakeFlag(key, value, record.collective);
  if (key == "base") return TakeExtents(key, value, record.base);
  if (key == "last_trough") return TakeExtents(key, value, record.last_trough);
  if (key == "extents") return TakeExtents(key, value, record.extents);
  if (key == "reclaim") return TakeExtents(key, value, record.reclaim);
  return Status(StatusCode::kInvalidArgument, "'" + key + "' is not a key of the event log");
}

}  // namespace

std::string ToJson(const Record& record) {
  std::string line = "{\"t_ns\":" + std::to_string(record.t_ns);
  AppendText(line, "event", scheduler::EventName(record.event));
  AppendNumber(line, "job", record.job, scheduler::kNoJob);
  AppendText(line, "name", record.name);
  AppendText(line, "policy", record.policy);
  AppendNumber(line, "unit_bytes", record.unit_bytes);
  AppendNumber(line, "bytes", record.bytes);
  AppendNumber(line, "units", record.units);
  AppendNumber(line, "contiguous", record.contiguous);
  AppendNumber(line, "request", record.request);
  AppendNumber(line, "limit", record.limit);
  AppendNumber(line, "gate", record.gate);
  AppendNumber(line, "iteration", record.iteration);
  AppendNumber(line, "claim", record.claim);
  AppendNumber(line, "waives", record.waives);
  AppendNumber(line, "piece", record.piece, scheduler::kWholeClaim);
  AppendNumber(line, "release", record.release);
  AppendFlag(line, "returns", record.returns);
  AppendFlag(line, "profiled", record.profiled);
  AppendFlag(line, "drained", record.drained);
  AppendFlag(line, "sums_only", record.sums_only);
  AppendFlag(line, "collective", record.collective);
  AppendExtents(line, "extents", record.extents);
  AppendExtents(line, "reclaim", record.reclaim);
  AppendFlag(line, "settled", record.settled);
  AppendExtents(line, "base", record.base);
  AppendExtents(line, "last_trough", record.last_trough);
  AppendText(line, "reason", record.reason);
  AppendText(line, "text", record.text);
  return line + '}';
}

Result<Record> FromJson(std::string_view line) {
  const json object = json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) {
    return Status(StatusCode::kInvalidArgument, "not a JSON object");
  }
  for (const char* required : {"t_ns", "event"}) {
    if (!object.contains(required)) {
      return Status(StatusCode::kInvalidArgument, std::string("'") + required + "' is missing");
    }
  }
  Record record;
  for (const auto& [key, value] : object.items()) {
    if (Status taken = TakeField(key, value, record); !taken.ok()) return taken;
  }
  return record;
}

Result<std::vector<Record>> ReadLog(std::istream& input) {
  std::vector<Record> records;
  std::string line;
  while (std::getline(input, line)) {
    Result<Record> record = FromJson(line);
    if (!record.ok()) {
      return record.status().Annotate("line " + std::to_string(records.size() + 1));
    }
    records.push_back(std::move(*record));
  }
  return records;
}

Result<std::vector<Record>> ReadLogFile(const std::string& path) {
  std::ifstream file(path);
  if (!file) return Status::FromErrno(errno, path);
  Result<std::vector<Record>> records = ReadLog(file);
  // A folder opens like a file and then cannot be read.
  if (file.bad()) return Status(StatusCode::kInvalidArgument, path + ": cannot be read");
  return records.ok() ? std::move(records)
                      : Result<std::vector<Record>>(records.status().Annotate(path));
}

}  // namespace sluice::eventlog
