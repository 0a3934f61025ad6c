// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "bench/papers_timeline.h"

#include <algorithm>
#include <map>

#include "scheduler/audit/replay.h"

namespace sluice::bench {

using scheduler::EventKind;
using scheduler::JobId;
using scheduler::Record;
using scheduler::audit::Replay;

namespace {

constexpr double kGigabyte = 1e9;

bool In(const Window& window, const Record& record) {
  const auto at = static_cast<double>(record.t_ns);
  return window.from_ns <= at && at <= window.to_ns;
}

/// Goes on at `y`, and says so only where that is news.
void Step(Series* series, double x, double y) {
  if (!series->points.empty()) {
    const double before = series->points.back().second;
    if (before == y) return;
    series->points.emplace_back(x, before);
  }
  series->points.emplace_back(x, y);
}

}  // namespace

std::vector<Series> HeldOverTime(const std::vector<Record>& records,
                                 const std::vector<std::string>& names, const Window& window) {
  std::vector<Series> series;
  for (const std::string& name : names) series.push_back({name, {}});
  series.push_back({"all", {}});
  if (records.empty() || records.front().event != EventKind::kPool) return series;
  Replay replay(records.front().units);
  const double unit = static_cast<double>(records.front().unit_bytes) / kGigabyte;
  const auto held = [&](size_t job) {
    const auto found = replay.jobs().find(static_cast<JobId>(job + 1));
    return found == replay.jobs().end() ? 0.0 : unit * found->second.held;
  };
  const auto look = [&](double at_ns) {
    double all = 0;
    for (size_t job = 0; job < names.size(); ++job) {
      all += held(job);
      Step(&series[job], (at_ns - window.from_ns) / 1e6, held(job));
    }
    Step(&series.back(), (at_ns - window.from_ns) / 1e6, all);
  };
  for (const Record& record : records) {
    const auto at = static_cast<double>(record.t_ns);
    // Recorded times are whole and rounded down: this one may be the end of the window already,
    // and what comes with its end is no part of it.
    if (at + 1 > window.to_ns) break;
    replay.Apply(record);
    look(std::max(at, window.from_ns));
  }
  // What came before the window shows as what it begins with.
  for (Series& one : series) {
    const auto first = std::find_if(one.points.rbegin(), one.points.rend(),
                                    [](const auto& point) { return point.first <= 0; });
    if (first != one.points.rend()) one.points.erase(one.points.begin(), first.base() - 1);
    if (!one.points.empty()) {
      one.points.emplace_back((window.to_ns - window.from_ns) / 1e6, one.points.back().second);
    }
  }
  return series;
}

double MeanGapNs(const std::vector<Record>& records, const Window& window) {
  std::map<JobId, uint64_t> at_trough_since;
  double sum = 0;
  size_t count = 0;
  for (const Record& record : records) {
    if (record.event == EventKind::kTrough) at_trough_since[record.job] = record.t_ns;
    if (record.event != EventKind::kGate) continue;
    const auto since = at_trough_since.find(record.job);
    if (since == at_trough_since.end()) continue;
    if (In(window, record)) {
      sum += static_cast<double>(record.t_ns - since->second);
      ++count;
    }
    at_trough_since.erase(since);
  }
  return count == 0 ? 0 : sum / static_cast<double>(count);
}

size_t IterationsIn(const std::vector<Record>& records, JobId job, const Window& window) {
  return static_cast<size_t>(std::count_if(records.begin(), records.end(), [&](const Record& r) {
    return r.event == EventKind::kGate && r.job == job && In(window, r);
  }));
}

}  // namespace sluice::bench
