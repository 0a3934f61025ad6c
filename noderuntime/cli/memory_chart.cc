// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/cli/memory_chart.h"

#include <algorithm>
#include <cstdio>

#include "common/bytes.h"

namespace sluice::cli {
namespace {

constexpr size_t kLabelColumns = 10;
constexpr const char* kFills[] = {"█", "▒", "▓", "░", "◆", "○"};
constexpr const char* kColours[] = {"\x1b[34m", "\x1b[33m", "\x1b[32m",
                                    "\x1b[35m", "\x1b[36m", "\x1b[31m"};

const char* Fill(size_t job) { return kFills[job % std::size(kFills)]; }

std::string Cell(size_t job, bool colour) {
  if (!colour) return Fill(job);
  return std::string(kColours[job % std::size(kColours)]) + Fill(job) + "\x1b[0m";
}

std::string Label(const std::string& text) {
  char padded[64];
  std::snprintf(padded, sizeof padded, "%*s ", static_cast<int>(kLabelColumns), text.c_str());
  return padded;
}

/// Mean bytes held by every job in every column.
std::vector<std::vector<double>> Columns(const MemoryHistory& history, ChartWindow window,
                                         size_t columns) {
  const double span = static_cast<double>(window.to_ns - window.from_ns);
  const double width = span / static_cast<double>(columns);
  std::vector<std::vector<double>> mean(history.labels.size(), std::vector<double>(columns));
  std::vector<uint64_t> held(history.labels.size());
  std::vector<double> since(history.labels.size());

  // Spreads what a job held from `since` to `until` (relative to the window) over the columns.
  const auto spread = [&](size_t job, double until) {
    until = std::clamp(until, 0.0, span);
    double from = since[job];
    since[job] = until;
    while (from < until) {
      const size_t column = std::min(static_cast<size_t>(from / width), columns - 1);
      const double end =
          column + 1 == columns ? until : std::min(until, static_cast<double>(column + 1) * width);
      // Rounding may leave `end` at `from`: step over rather than loop.
      if (end <= from) break;
      mean[job][column] += static_cast<double>(held[job]) * (end - from) / width;
      from = end;
    }
  };
  for (const HeldStep& step : history.steps) {
    if (step.job >= held.size()) continue;
    spread(step.job, static_cast<double>(step.t_ns) - static_cast<double>(window.from_ns));
    held[step.job] = step.bytes;
  }
  for (size_t job = 0; job < held.size(); ++job) spread(job, span);
  return mean;
}

std::string MarkRow(const MemoryHistory& history, ChartWindow window, size_t job, size_t columns) {
  std::vector<bool> marked(columns);
  const double width =
      static_cast<double>(window.to_ns - window.from_ns) / static_cast<double>(columns);
  for (const HeldStep& mark : history.marks) {
    if (mark.job != job || mark.t_ns < window.from_ns || mark.t_ns >= window.to_ns) continue;
    const auto column =
        static_cast<size_t>(static_cast<double>(mark.t_ns - window.from_ns) / width);
    marked[std::min(column, columns - 1)] = true;
  }
  std::string row = Label(history.labels[job]) + " ";
  for (const bool mark : marked) row += mark ? "▲" : "·";
  return row + "\n";
}

}  // namespace

ChartWindow MiddleWindow(const MemoryHistory& history, size_t marks) {
  if (history.steps.empty()) return {0, 1};
  std::vector<uint64_t> own;
  for (const HeldStep& mark : history.marks) {
    if (mark.job == 0) own.push_back(mark.t_ns);
  }
  const ChartWindow all = {history.steps.front().t_ns, history.steps.back().t_ns + 1};
  if (own.size() <= marks + 1) return all;
  ChartWindow best = all;
  std::pair<size_t, size_t> best_rank = {0, 0};
  for (size_t first = 0; first + marks < own.size(); ++first) {
    const ChartWindow window = {own[first], own[first + marks]};
    if (window.to_ns <= window.from_ns) continue;
    std::vector<size_t> count(history.labels.size());
    for (const HeldStep& mark : history.marks) {
      const bool inside = window.from_ns <= mark.t_ns && mark.t_ns < window.to_ns;
      if (inside && mark.job < count.size()) ++count[mark.job];
    }
    const size_t last = own.size() - marks - 1;
    const size_t from_end = std::min(first, last - first) + 1;
    const std::pair rank = {*std::min_element(count.begin(), count.end()), from_end};
    if (rank <= best_rank) continue;
    best = window;
    best_rank = rank;
  }
  return best;
}

std::string RenderChart(const MemoryHistory& history, ChartWindow window, const ChartStyle& style) {
  const size_t columns = std::max<size_t>(style.columns, kLabelColumns + 12) - kLabelColumns - 2;
  const size_t jobs = history.labels.size();
  const auto mean = Columns(history, window, columns);
  const double row_bytes =
      static_cast<double>(history.pool_bytes) / static_cast<double>(style.rows);

  std::string text = Label(FormatBytes(history.pool_bytes)) + "┬";
  for (size_t column = 0; column < columns; ++column) text += "─";
  text += " pool\n";
  for (size_t row = style.rows; row-- > 0;) {
    // A cell belongs to the job whose band covers its middle.
    const double middle = (static_cast<double>(row) + 0.5) * row_bytes;
    const bool half = row * 2 == style.rows && row > 0;
    text += Label(half ? FormatBytes(history.pool_bytes / 2) : "");
    text += half ? "┤" : "│";
    for (size_t column = 0; column < columns; ++column) {
      double top = 0;
      size_t owner = jobs;
      for (size_t job = 0; job < jobs && owner == jobs; ++job) {
        top += mean[job][column];
        if (middle < top) owner = job;
      }
      text += owner == jobs ? " " : Cell(owner, style.colour);
    }
    text += "\n";
  }
  text += Label("0") + "┴";
  for (size_t column = 0; column < columns; ++column) text += "─";
  char span[64];
  std::snprintf(span, sizeof span, " %.1f ms\n",
                static_cast<double>(window.to_ns - window.from_ns) / 1e6);
  text += span;
  for (size_t job = 0; style.marks && job < jobs; ++job) {
    text += MarkRow(history, window, job, columns);
  }
  text += Label("") + " ";
  for (size_t job = 0; job < jobs; ++job) {
    text += Cell(job, style.colour) + " " + history.labels[job] + "   ";
  }
  return text + (style.marks ? "▲ an iteration starts (gate 0 opens)\n" : "\n");
}

}  // namespace sluice::cli
