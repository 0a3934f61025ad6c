// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/cli/look/top_screen.h"

#include <algorithm>
#include <map>

#include "common/bytes.h"
#include "noderuntime/cli/memory_chart.h"
#include "noderuntime/cli/offline/format.h"
#include "noderuntime/cli/text_columns.h"

namespace sluice::cli {
namespace {

constexpr uint64_t kShownMs = 10'000;
constexpr size_t kChartRows = 8;
/// Columns of what stands to the right of the picture.
constexpr size_t kLabels = 12;
constexpr size_t kMinRowsForChart = 20;
/// More fills than that cannot be told apart.
constexpr size_t kChartJobs = 4;

/// Names come from anywhere; a terminal obeys what is not text.
std::string Printable(std::string text, size_t most) {
  for (char& c : text) {
    if (c < ' ' || c > '~') c = '?';
  }
  if (text.size() > most) text = text.substr(0, most - 2) + "..";
  return text;
}

/// By characters: the picture's are of several bytes.
std::string Clipped(std::string line, size_t columns) {
  size_t seen = 0;
  for (size_t i = 0; i < line.size(); ++i) {
    const bool begins = (static_cast<unsigned char>(line[i]) & 0xc0) != 0x80;
    if (begins && ++seen > columns) {
      line.resize(i);
      break;
    }
  }
  return line;
}

std::string Gate(const LiveJob& job) {
  if (job.gates == 0) return "-";
  return std::to_string(job.gate) + "/" + std::to_string(job.gates);
}

std::string Waiting(const LiveJob& job) {
  if (job.waits_for.empty()) return "";
  return Format("%.1f s ", static_cast<double>(job.waits_ms) / 1e3) + job.code;
}

std::string Header(const LiveView& view, const TopState& state) {
  const auto seconds = static_cast<unsigned>(view.now_ms() / 1000 % 86400);
  std::string text = "sluice top";
  if (!state.gpu.empty()) text += "  " + state.gpu;
  text += "  pool " + FormatBytes(view.pool());
  if (view.budget() != view.pool()) text += " (" + FormatBytes(view.budget()) + " lent)";
  text += "  free " + FormatBytes(view.free()) + "  policy " + view.policy() + ", " +
          std::to_string(view.lanes()) + " lanes";
  text += Format("  %02u:%02u:%02u UTC", seconds / 3600, seconds / 60 % 60, seconds % 60);
  if (state.paused) text += "  PAUSED";
  return text;
}

/// The largest jobs by themselves, all others together.
MemoryHistory HistoryOf(const LiveView& view) {
  MemoryHistory history;
  history.pool_bytes = view.pool();
  std::map<uint32_t, uint32_t> row;
  const std::vector<LiveJob> jobs = JobsInOrder(view, TopState::Order::kHeld);
  const size_t alone = jobs.size() <= kChartJobs ? jobs.size() : kChartJobs - 1;
  for (size_t i = 0; i < alone; ++i) {
    row[jobs[i].id] = static_cast<uint32_t>(i);
    history.labels.push_back("job " + std::to_string(jobs[i].id));
  }
  if (alone < jobs.size()) history.labels.emplace_back("others");
  const auto rest = static_cast<uint32_t>(alone);
  std::vector<uint64_t> last(history.labels.size(), 0);
  for (const LiveStep& step : view.steps()) {
    std::vector<uint64_t> now(history.labels.size(), 0);
    for (const auto& [job, bytes] : step.bytes) {
      const auto found = row.find(job);
      const uint32_t at = found == row.end() ? rest : found->second;
      if (at < now.size()) now[at] += bytes;
    }
    for (uint32_t i = 0; i < now.size(); ++i) {
      if (now[i] == last[i]) continue;
      history.steps.push_back({step.t_ms * 1'000'000, i, now[i]});
      last[i] = now[i];
    }
  }
  return history;
}

void AddChart(const LiveView& view, const TopState& state, std::vector<std::string>* lines) {
  const MemoryHistory history = HistoryOf(view);
  if (history.labels.empty()) return;
  ChartStyle style;
  style.columns = std::max<size_t>(state.columns, 40) - kLabels;
  style.rows = kChartRows;
  style.marks = false;
  const uint64_t to = view.now_ms() * 1'000'000;
  const std::string chart = RenderChart(history, {to - kShownMs * 1'000'000, to}, style);
  size_t from = 0;
  while (from < chart.size()) {
    const size_t end = std::min(chart.find('\n', from), chart.size());
    lines->push_back(Clipped(chart.substr(from, end - from), state.columns));
    from = end + 1;
  }
  lines->emplace_back();
}

/// What of a job's row there is room for.
struct Shape {
  size_t longest_name;
  bool live;
  bool limit;
  bool gate;
};
/// From all of it to what tells who lends and who waits.
constexpr Shape kShapes[] = {{24, true, true, true},
                             {12, true, true, true},
                             {12, true, false, true},
                             {12, false, false, true},
                             {10, false, false, false}};

std::vector<std::string> Row(const Shape& shape, const std::vector<std::string>& all) {
  std::vector<std::string> row;
  for (size_t i = 0; i < all.size(); ++i) {
    if ((i == 3 && !shape.gate) || (i == 5 && !shape.live) || (i == 7 && !shape.limit)) continue;
    row.push_back(all[i]);
  }
  return row;
}

std::string Table(const std::vector<LiveJob>& jobs, const Shape& shape) {
  std::vector<std::vector<std::string>> rows = {
      Row(shape, {"JOB", "NAME", "PHASE", "GATE", "HELD", "IN USE", "CLAIM", "LIMIT", "LENT",
                  "BORROWED", "WAITS"})};
  for (const LiveJob& job : jobs) {
    rows.push_back(Row(shape, {std::to_string(job.id), Printable(job.name, shape.longest_name),
                               job.phase, Gate(job), FormatBytes(job.held), FormatBytes(job.live),
                               FormatBytes(job.claim), FormatBytes(job.limit),
                               FormatBytes(job.lent), FormatBytes(job.borrowed), Waiting(job)}));
  }
  return AlignColumns(rows, 0, shape.gate ? 3 : 2, rows.front().size() - 2);
}

std::vector<std::string> Split(const std::string& text) {
  std::vector<std::string> lines;
  size_t from = 0;
  while (from < text.size()) {
    const size_t end = text.find('\n', from);
    lines.push_back(text.substr(from, end - from));
    from = end + 1;
  }
  return lines;
}

/// The fullest one that is no wider, or the narrowest.
std::vector<std::string> TableThatFits(const std::vector<LiveJob>& jobs, size_t columns) {
  std::vector<std::string> lines;
  for (const Shape& shape : kShapes) {
    lines = Split(Table(jobs, shape));
    if (std::all_of(lines.begin(), lines.end(),
                    [&](const std::string& line) { return line.size() <= columns; })) {
      break;
    }
  }
  return lines;
}

}  // namespace

std::vector<LiveJob> JobsInOrder(const LiveView& view, TopState::Order order) {
  std::vector<LiveJob> jobs = view.jobs();
  std::stable_sort(jobs.begin(), jobs.end(), [order](const LiveJob& a, const LiveJob& b) {
    switch (order) {
      case TopState::Order::kHeld:
        return a.held > b.held;
      case TopState::Order::kWaits:
        return a.waits_ms > b.waits_ms;
      case TopState::Order::kNumber:
        break;
    }
    return a.id < b.id;
  });
  return jobs;
}

TopScreen RenderTop(const LiveView& view, const TopState& state) {
  TopScreen screen;
  std::vector<std::string>& lines = screen.lines;
  if (!state.gone.empty()) {
    lines = {"sluice top", "", Clipped(state.gone, state.columns), "", "q ends"};
    return screen;
  }
  lines.push_back(Clipped(Header(view, state), state.columns));
  lines.emplace_back();
  const std::vector<LiveJob> jobs = JobsInOrder(view, state.order);
  if (jobs.empty()) {
    lines.emplace_back("no job yet: sluice run -- PROGRAM");
    lines.emplace_back();
    lines.emplace_back("q ends");
    return screen;
  }
  if (state.rows >= kMinRowsForChart + std::min<size_t>(jobs.size(), 4)) {
    AddChart(view, state, &lines);
  }
  const std::vector<std::string> table = TableThatFits(jobs, state.columns);
  const size_t selected = std::min(state.selected, jobs.size() - 1);
  // The names of columns, the sentence, the keys, and a blank line before each of the latter.
  const size_t taken = lines.size() + 5;
  const size_t room = state.rows > taken ? state.rows - taken : 1;
  const size_t first = selected < room ? 0 : selected - room + 1;
  screen.header = lines.size();
  lines.push_back(Clipped(table[0], state.columns));
  for (size_t i = first; i < std::min(jobs.size(), first + room); ++i) {
    if (i == selected) screen.selected = lines.size();
    lines.push_back(Clipped(table[i + 1], state.columns));
  }
  const LiveJob& job = jobs[selected];
  lines.emplace_back();
  lines.push_back(Clipped(
      "job " + std::to_string(job.id) +
          (job.waits_for.empty() ? " waits for nothing" : ": " + Printable(job.waits_for, 1024)),
      state.columns));
  lines.emplace_back();
  lines.push_back(
      Clipped("q ends  p pauses  arrows select  n, h, w order by number, held, waits  g next GPU",
              state.columns));
  if (lines.size() > state.rows) lines.resize(state.rows);
  if (screen.selected != TopScreen::kNone && screen.selected >= lines.size()) {
    screen.selected = TopScreen::kNone;
  }
  return screen;
}

}  // namespace sluice::cli
