// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "bench/replay_report.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "bench/machine.h"
#include "noderuntime/cli/offline/format.h"

namespace sluice::bench {
namespace {

using cli::Format;

constexpr double kGoalError = 0.10;  // of the iteration's time, at p90
constexpr int64_t kGoalUnits = 1;    // of the most that a job holds

double ErrorOf(const ReplayRow& row, size_t job) {
  return row.model.jobs[job].mean_ms / row.live.jobs[job].mean_ms - 1;
}

int64_t UnitsOff(scheduler::Units model, scheduler::Units live) {
  return int64_t{model} - int64_t{live};
}

const char* Word(bool met) { return met ? "ok" : "missed"; }

/// Of sorted figures; 0 where there is none.
template <class Number>
Number At(const std::vector<Number>& sorted, double share) {
  if (sorted.empty()) return 0;
  const auto place = static_cast<size_t>(std::ceil(share * static_cast<double>(sorted.size())));
  return sorted[std::clamp<size_t>(place, 1, sorted.size()) - 1];
}

/// How far the model is off of each job, without sign; sorted.
struct Figures {
  std::vector<double> errors;
  std::vector<int64_t> granted;
  std::vector<int64_t> held;
  size_t failed = 0;
  size_t refused = 0;  // in their first pool
};

Figures FiguresOf(const std::vector<ReplayRow>& rows) {
  Figures figures;
  for (const ReplayRow& row : rows) {
    figures.refused += row.refused.empty() ? 0u : 1u;
    if (!row.error.empty()) {
      ++figures.failed;
      continue;
    }
    for (size_t i = 0; i < 2; ++i) {
      figures.errors.push_back(std::abs(ErrorOf(row, i)));
      const ReplayedJob& model = row.model.jobs[i];
      const ReplayedJob& live = row.live.jobs[i];
      figures.granted.push_back(std::abs(UnitsOff(model.most_granted, live.most_granted)));
      figures.held.push_back(std::abs(UnitsOff(model.most_held, live.most_held)));
    }
  }
  std::sort(figures.errors.begin(), figures.errors.end());
  std::sort(figures.granted.begin(), figures.granted.end());
  std::sort(figures.held.begin(), figures.held.end());
  return figures;
}

}  // namespace

std::string ReplayHead() {
  return Format("%-10s %-16s %5s %10s %10s %7s %10s %8s %5s %8s %5s\n", "policy", "job", "pool",
                "processes", "model", "error", "iterations", "granted", "off", "held", "off");
}

std::string ReplayLines(const ReplayRow& row) {
  std::string text;
  for (const scheduler::Units pool : row.refused) {
    text +=
        Format("%-10s %s, pool %u: out of memory\n", row.policy.c_str(), row.pair.c_str(), pool);
  }
  if (!row.error.empty()) {
    return text + Format("%-10s %s, pool %u: %s (model: %.1f and %.1f ms)\n", row.policy.c_str(),
                         row.pair.c_str(), row.pool_units, row.error.c_str(),
                         row.model.jobs[0].mean_ms, row.model.jobs[1].mean_ms);
  }
  for (size_t i = 0; i < 2; ++i) {
    const size_t plus = row.pair.find(" + ");
    const std::string job = i == 0 ? row.pair.substr(0, plus) : row.pair.substr(plus + 3);
    const ReplayedJob& live = row.live.jobs[i];
    const ReplayedJob& model = row.model.jobs[i];
    text +=
        Format("%-10s %-16s %5u %7.1f ms %7.1f ms %+6.1f%% %10u %8u %+5lld %8u %+5lld\n",
               row.policy.c_str(), job.c_str(), row.pool_units, live.mean_ms, model.mean_ms,
               100 * ErrorOf(row, i), live.iterations, live.most_granted,
               static_cast<long long>(UnitsOff(model.most_granted, live.most_granted)),
               live.most_held, static_cast<long long>(UnitsOff(model.most_held, live.most_held)));
  }
  return text;
}

ReplayVerdict Judge(const std::vector<ReplayRow>& rows) {
  const Figures figures = FiguresOf(rows);
  const double p90 = At(figures.errors, 0.9);
  ReplayVerdict verdict;
  const bool complete = figures.failed == 0 && !figures.errors.empty();
  const bool time = complete && p90 <= kGoalError;
  verdict.met = time;
  verdict.text = Format("\niteration time, error: p50 %.1f %%, p90 %.1f %%, goal <= %.0f %%  %s\n",
                        100 * At(figures.errors, 0.5), 100 * p90, 100 * kGoalError, Word(time));
  const auto add = [&](const char* what, const std::vector<int64_t>& off) {
    const auto beyond = std::upper_bound(off.begin(), off.end(), kGoalUnits);
    const bool met = complete && beyond == off.end();
    verdict.met = verdict.met && met;
    verdict.text += Format(
        "%s at most by a job, in lease units: off by %lld at p90 and by at most %lld, "
        "%zu of %zu by at most one, goal <= %lld of all  %s\n",
        what, static_cast<long long>(At(off, 0.9)), static_cast<long long>(At(off, 1)),
        static_cast<size_t>(beyond - off.begin()), off.size(), static_cast<long long>(kGoalUnits),
        Word(met));
  };
  add("granted", figures.granted);
  add("held", figures.held);
  if (figures.refused > 0) {
    verdict.text +=
        Format("%zu of %zu runs ran out of memory in the first pool (no figure of the model)\n",
               figures.refused, rows.size());
  }
  if (figures.failed > 0) verdict.text += Format("%zu pairs without figures\n", figures.failed);
  return verdict;
}

nlohmann::json ReplayJson(const std::vector<ReplayRow>& rows, const ReplayMachine& machine,
                          const std::string& claims, scheduler::Placing placing) {
  const Figures figures = FiguresOf(rows);
  nlohmann::json json = {{"simulated", true},
                         {"machine", DescribeMachine()},
                         {"gpu", machine.text},
                         {"claims", claims},
                         {"placing", scheduler::PlacingName(placing)},
                         {"unit_bytes", kReplayUnit},
                         {"error_p50", At(figures.errors, 0.5)},
                         {"error_p90", At(figures.errors, 0.9)},
                         {"goal_error_p90", kGoalError},
                         {"granted_off_p90", At(figures.granted, 0.9)},
                         {"most_granted_off", At(figures.granted, 1)},
                         {"held_off_p90", At(figures.held, 0.9)},
                         {"most_held_off", At(figures.held, 1)},
                         {"goal_units_off", kGoalUnits},
                         {"out_of_memory_in_first_pool", figures.refused},
                         {"failed", figures.failed}};
  for (const ReplayRow& row : rows) {
    nlohmann::json entry = {
        {"pair", row.pair}, {"policy", row.policy}, {"pool_units", row.pool_units}};
    if (!row.error.empty()) entry["failed"] = row.error;
    if (!row.refused.empty()) entry["out_of_memory_in_pools"] = row.refused;
    for (size_t i = 0; i < 2 && row.error.empty(); ++i) {
      for (const auto& [side, run] :
           {std::pair{"processes", &row.live}, std::pair{"model", &row.model}}) {
        const ReplayedJob& job = run->jobs[i];
        entry[side]["jobs"].push_back({{"iteration_ms", job.mean_ms},
                                       {"median_ms", job.median_ms},
                                       {"iterations", job.iterations},
                                       {"most_granted_units", job.most_granted},
                                       {"most_used_units", job.most_used},
                                       {"most_held_units", job.most_held}});
        entry[side]["most_held_units"] = run->most_held;
      }
    }
    json["rows"].push_back(std::move(entry));
  }
  return json;
}

}  // namespace sluice::bench
