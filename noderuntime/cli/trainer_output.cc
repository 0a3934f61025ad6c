// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/cli/trainer_output.h"

#include <algorithm>
#include <charconv>
#include <string_view>

namespace sluice::cli {
namespace {

/// What follows the last space of "loss ITERATION HEX-FLOAT".
std::string_view LossOf(std::string_view line) { return line.substr(line.rfind(' ') + 1); }

/// The value behind " key=" in a line of "word key=value ..."; empty when there is none.
std::string_view Value(std::string_view line, std::string_view key) {
  for (size_t start = 0; start < line.size();) {
    const size_t end = std::min(line.find(' ', start), line.size());
    const std::string_view item = line.substr(start, end - start);
    if (item.size() > key.size() && item.starts_with(key) && item[key.size()] == '=') {
      return item.substr(key.size() + 1);
    }
    start = end + 1;
  }
  return {};
}

bool IsLossLine(std::string_view line) { return line.starts_with("loss "); }

/// Whether all of `text` is a number as printf("%a") writes it.
bool IsHexFloat(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  if (!text.starts_with("0x")) return text == "inf" || text == "nan";
  text.remove_prefix(2);
  double value = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::hex);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

Result<TrainerOutput> ParseTrainerOutput(const std::vector<std::string>& lines) {
  TrainerOutput output;
  for (const std::string& line : lines) {
    const auto bad = [&](const std::string& what) {
      return Status(StatusCode::kInvalidArgument, "'" + line + "': " + what);
    };
    if (IsLossLine(line)) {
      const std::string_view loss = LossOf(line);
      if (!IsHexFloat(loss)) return bad("no loss in hexadecimal floating point");
      output.losses.emplace_back(loss);
    } else if (line.starts_with("done ")) {
      const std::string_view peak = Value(line, "peak_bytes");
      uint64_t bytes = 0;
      const auto [end, error] = std::from_chars(peak.data(), peak.data() + peak.size(), bytes);
      if (peak.empty() || error != std::errc() || end != peak.data() + peak.size()) {
        return bad("no peak_bytes");
      }
      output.peak_bytes = bytes;
    }
  }
  return output;
}

bool AllFinite(const std::vector<std::string>& losses) {
  return std::all_of(losses.begin(), losses.end(),
                     [](const std::string& loss) { return loss.find("0x") != std::string::npos; });
}

size_t CountLosses(const std::vector<std::string>& lines) {
  size_t count = 0;
  for (const std::string& line : lines) count += IsLossLine(line) ? 1u : 0u;
  return count;
}

std::string CompareLosses(const std::vector<std::string>& expected,
                          const std::vector<std::string>& actual) {
  for (size_t i = 0; i < std::min(expected.size(), actual.size()); ++i) {
    if (expected[i] == actual[i]) continue;
    return "iteration " + std::to_string(i) + ": " + actual[i] + " instead of " + expected[i];
  }
  if (expected.size() == actual.size()) return "";
  return std::to_string(actual.size()) + " losses instead of " + std::to_string(expected.size());
}

}  // namespace sluice::cli
