// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/place/offline/instance.h"

#include <algorithm>
#include <array>
#include <optional>
#include <unordered_set>

#include "scheduler/text/lines.h"

namespace sluice::scheduler {
namespace {

using text::LineReader;
using text::Quoted;
using text::ReadNumber;

constexpr std::array<std::string_view, 5> kColumns = {"id", "lower", "upper", "size", "offset"};
constexpr size_t kOffset = 4;  // the only one that may be missing

Status Fault(size_t line, const std::string& what) {
  return {StatusCode::kInvalidArgument, "line " + std::to_string(line) + ": " + what};
}

std::vector<std::string_view> Split(std::string_view line) {
  std::vector<std::string_view> fields;
  for (size_t from = 0;;) {
    const size_t comma = line.find(',', from);
    fields.push_back(line.substr(from, comma - from));
    if (comma == std::string_view::npos) return fields;
    from = comma + 1;
  }
}

using Places = std::array<std::optional<size_t>, kColumns.size()>;  // in a line, of each column

Status ReadHeading(std::string_view line, Places* places) {
  const auto fields = Split(line);
  for (size_t i = 0; i < fields.size(); ++i) {
    const auto* known = std::find(kColumns.begin(), kColumns.end(), fields[i]);
    if (known == kColumns.end()) {
      return Fault(1, "heading: " + Quoted(fields[i]) +
                          " is no column; there are id, lower, upper, size and offset");
    }
    auto& place = (*places)[static_cast<size_t>(known - kColumns.begin())];
    if (place.has_value()) return Fault(1, "heading: " + Quoted(fields[i]) + " is there twice");
    place = i;
  }
  for (size_t column = 0; column < kOffset; ++column) {
    if ((*places)[column].has_value()) continue;
    return Fault(1, "heading: the column '" + std::string(kColumns[column]) + "' is missing");
  }
  return {};
}

}  // namespace

Result<Instance> ParseInstance(std::string_view text) {
  LineReader lines(text, text::LineEnds::kAny);  // tables come from other programs
  if (lines.done()) return Fault(1, "heading: missing; it names id, lower, upper and size");
  Places places;
  Instance instance;
  std::unordered_set<std::string_view> seen;
  uint64_t total = 0;
  for (size_t width = 0; !lines.done();) {
    const Result<std::string_view> line = lines.Next();
    if (!line.ok()) return Fault(lines.number(), line.status().message());
    if (width == 0) {
      if (Status status = ReadHeading(*line, &places); !status.ok()) return status;
      width = Split(*line).size();
      continue;
    }
    const auto fields = Split(*line);
    if (fields.size() != width) {
      return Fault(lines.number(), std::to_string(fields.size()) + " fields, but the heading has " +
                                       std::to_string(width));
    }
    const std::string_view id = fields[*places[0]];
    if (id.empty()) return Fault(lines.number(), "id: must not be empty");
    if (!seen.insert(id).second) return Fault(lines.number(), "id: " + Quoted(id) + " came before");
    std::array<uint64_t, 3> number{};
    for (size_t i = 0; i < number.size(); ++i) {
      const Result<uint64_t> read = ReadNumber(kColumns[i + 1], fields[*places[i + 1]]);
      if (!read.ok()) return Fault(lines.number(), read.status().message());
      number[i] = *read;
    }
    const Buffer buffer{number[0], number[1], number[2]};
    const Status sound = CheckBuffer(buffer, &total);
    if (!sound.ok()) return Fault(lines.number(), sound.message());
    instance.ids.emplace_back(id);
    instance.buffers.push_back(buffer);
  }
  return instance;
}

std::string WriteInstance(const Instance& instance, const Offsets& offsets) {
  std::string text = "id,lower,upper,size,offset\n";
  for (size_t i = 0; i < instance.buffers.size(); ++i) {
    const Buffer& buffer = instance.buffers[i];
    text += instance.ids[i];
    for (const uint64_t number : {buffer.lower, buffer.upper, buffer.size, offsets[i]}) {
      text += ',' + std::to_string(number);
    }
    text += '\n';
  }
  return text;
}

}  // namespace sluice::scheduler
