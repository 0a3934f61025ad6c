// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "bench/frontier_report.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "bench/machine.h"
#include "noderuntime/cli/offline/format.h"

namespace sluice::bench {
namespace {

using cli::Format;

constexpr const char* kLineNames[] = {"contract", "steps", "auto"};
constexpr double kNeverBelow = 0.98;  // of taking turns

struct Goal {
  char regime;
  size_t line;
  bool worst;   // of all mixes instead of their mean
  size_t jobs;  // mixes of up to so many
  double least[kFrontierPoolCount];
};
constexpr Goal kGoals[] = {
    {'A', 2, false, 4, {0.43, 0.52, 0.65, 0.83}}, {'A', 2, true, 4, {0.30, 0.38, 0.46, 0.65}},
    {'B', 2, false, 4, {0.27, 0.62, 0.88, 0.95}}, {'C', 2, false, 4, {0.65, 0.88, 0.95, 0.97}},
    {'A', 1, false, 2, {0.36, 0.45, 0.58, 0.78}}, {'A', 0, false, 4, {0.00, 0.05, 0.22, 0.58}}};

/// nullopt: no mix counts.
std::optional<double> Retained(const RegimeRows& measured, size_t line, size_t pool, size_t jobs,
                               bool worst) {
  double sum = 0;
  double least = 1e9;
  size_t count = 0;
  for (const Row& row : measured.rows) {
    if (!row.error.empty() || row.jobs > jobs || row.unlimited < kWorthCounting) continue;
    sum += row.lines[line].retained[pool];
    least = std::min(least, row.lines[line].retained[pool]);
    ++count;
  }
  if (count == 0) return std::nullopt;
  return worst ? least : sum / static_cast<double>(count);
}

}  // namespace

std::vector<std::string> Missed(const RegimeRows& measured) {
  std::vector<std::string> missed;
  for (const Row& row : measured.rows) {
    if (!row.error.empty()) missed.push_back(row.mix + ": " + row.error);
    for (size_t line = 0; line < 3 && row.error.empty(); ++line) {
      for (size_t p = 0; p < kFrontierPoolCount; ++p) {
        if (row.lines[line].throughput[p] >= kNeverBelow) continue;
        missed.push_back(Format("%c: %s, %s at %.2f: %.3f of taking turns, goal %.2f",
                                measured.regime, row.mix.c_str(), kLineNames[line],
                                kFrontierPools[p], row.lines[line].throughput[p], kNeverBelow));
      }
    }
  }
  const auto up_to = [](const auto& rows, size_t jobs, const auto& jobs_of) {
    return std::count_if(rows.begin(), rows.end(),
                         [&](const auto& row) { return jobs_of(row) <= jobs; });
  };
  for (const Goal& goal : kGoals) {
    if (goal.regime != measured.regime) continue;
    // A mean of some of the mixes is no figure to compare with that of all.
    if (up_to(measured.rows, goal.jobs, [](const Row& row) { return row.jobs; }) <
        up_to(Mixes(), goal.jobs, [](const Mix& mix) { return mix.models.size(); }))
      continue;
    for (size_t p = 0; p < kFrontierPoolCount; ++p) {
      const auto value = Retained(measured, goal.line, p, goal.jobs, goal.worst);
      if (!value || *value >= goal.least[p]) continue;
      missed.push_back(Format("%c: %s, %s retained gain at %.2f: %.3f, goal %.2f", goal.regime,
                              kLineNames[goal.line], goal.worst ? "worst" : "mean",
                              kFrontierPools[p], *value, goal.least[p]));
    }
  }
  return missed;
}

std::string FrontierTable(const RegimeRows& measured) {
  std::string text =
      Format("Regime %c (simulated): throughput over taking turns at pools of", measured.regime);
  for (const double pool : kFrontierPools) text += Format(" %.2f", pool);
  text += "\n";
  text += Format("  %-20s %9s %9s   %-22s %-22s %-22s\n", "jobs", "turns", "unlimited", "contract",
                 "steps", "auto");
  for (const Row& row : measured.rows) {
    if (!row.error.empty()) {
      text += "  " + row.mix + ": " + row.error + "\n";
      continue;
    }
    text += Format("  %-20s %9.3f %9.2f  ", row.mix.c_str(), row.temporal, row.unlimited);
    for (const Line& line : row.lines) {
      for (const double throughput : line.throughput) text += Format(" %.2f", throughput);
      text += "   ";
    }
    text += "\n";
  }
  for (const bool worst : {false, true}) {
    text += Format("  %-40s  ", worst ? "worst retained gain" : "mean retained gain");
    for (size_t line = 0; line < 3; ++line) {
      for (size_t p = 0; p < kFrontierPoolCount; ++p) {
        const auto value = Retained(measured, line, p, 4, worst);
        text += value ? Format(" %.2f", *value) : "    -";
      }
      text += "   ";
    }
    text += "\n";
  }
  return text;
}

nlohmann::json FrontierJson(const std::vector<RegimeRows>& measured) {
  nlohmann::json json = {{"simulated", true}, {"machine", DescribeMachine()}};
  for (const double pool : kFrontierPools) json["pools"].push_back(pool);
  for (const RegimeRows& regime : measured) {
    nlohmann::json rows = nlohmann::json::array();
    for (const Row& row : regime.rows) {
      nlohmann::json entry = {
          {"jobs", row.mix}, {"turns", row.temporal}, {"unlimited_over_turns", row.unlimited}};
      for (size_t line = 0; line < 3; ++line) {
        entry[kLineNames[line]] = {{"over_turns", row.lines[line].throughput},
                                   {"retained_gain", row.lines[line].retained}};
      }
      if (!row.error.empty()) entry["error"] = row.error;
      rows.push_back(std::move(entry));
    }
    json["regimes"][std::string(1, regime.regime)] = {{"rows", std::move(rows)},
                                                      {"missed", Missed(regime)}};
  }
  return json;
}

}  // namespace sluice::bench
