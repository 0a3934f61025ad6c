// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

/// Pickles of plain data by hand, as protocol 2 writes them without a memo.
namespace sluice::scheduler::trace::plain {

inline std::string LittleEndian(uint64_t number, size_t bytes) {
  std::string text;
  for (size_t i = 0; i < bytes; ++i) text += static_cast<char>(number >> (8 * i));
  return text;
}

inline std::string Int(int64_t value) {
  return "\x8a\x08" + LittleEndian(static_cast<uint64_t>(value), 8);
}

inline std::string Str(const std::string& text) {
  return "X" + LittleEndian(text.size(), 4) + text;
}

inline std::string List(const std::vector<std::string>& items) {
  std::string text = "](";
  for (const std::string& item : items) text += item;
  return text + "e";
}

inline std::string Dict(const std::vector<std::pair<std::string, std::string>>& items) {
  std::string text = "}(";
  for (const auto& [key, value] : items) text += Str(key) + value;
  return text + "u";
}

inline std::string Dump(const std::string& value) { return "\x80\x02" + value + "."; }

/// An entry of device_traces.
inline std::string Entry(const std::string& action, int64_t addr, int64_t size, int64_t time_us) {
  return Dict({{"action", Str(action)},
               {"addr", Int(addr)},
               {"size", Int(size)},
               {"stream", Int(0)},
               {"time_us", Int(time_us)}});
}

/// A snapshot with one device.
inline std::string Snapshot(const std::vector<std::string>& entries) {
  return Dump(Dict({{"segments", List({})}, {"device_traces", List({List(entries)})}}));
}

}  // namespace sluice::scheduler::trace::plain
