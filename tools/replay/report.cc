// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "tools/replay/report.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

namespace sluice::replay {
namespace {

nlohmann::ordered_json Numbers(const Report& report) {
  const std::vector<double>& ms = report.iteration_ms;
  const double sum = std::accumulate(ms.begin(), ms.end(), 0.0);
  return {{"iterations", ms.size()},
          {"iteration_ms_mean", ms.empty() ? 0.0 : sum / static_cast<double>(ms.size())},
          {"iteration_ms_p50", Percentile(ms, 0.5)},
          {"iteration_ms_p90", Percentile(ms, 0.9)},
          {"kernel_ms", report.kernel_ms},
          {"wall_ms", report.wall_ms},
          {"launches", report.launches},
          {"blocks_checked", report.blocks_checked},
          {"blocks_initialised", report.blocks_initialised},
          {"words_checked", report.words_checked},
          {"mismatches", report.mismatches},
          {"peak_live_bytes", report.peak_live_bytes},
          {"driver_peak_bytes", report.driver_peak_bytes}};
}

}  // namespace

double Percentile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const double rank = std::ceil(share * static_cast<double>(values.size()));
  const size_t place = rank < 1 ? 0 : static_cast<size_t>(rank) - 1;
  return values[std::min(place, values.size() - 1)];
}

std::string ReportText(const Report& report) {
  const nlohmann::ordered_json numbers = Numbers(report);
  std::string text;
  for (const auto& [key, value] : numbers.items()) text += key + "=" + value.dump() + "\n";
  return text;
}

std::string ReportJson(const Report& report) {
  nlohmann::ordered_json all = Numbers(report);
  all["iteration_ms"] = report.iteration_ms;
  all["ok"] = report.ok();
  if (report.first) {
    all["first_mismatch"] = {{"iteration", report.first->iteration},
                             {"operator", report.first->launch},
                             {"block", report.first->block}};
  }
  return all.dump() + "\n";
}

std::string Complaint(const Report& report) {
  if (report.ok()) return "";
  std::string text;
  if (report.mismatches != 0) {
    text = std::to_string(report.mismatches) + " of " + std::to_string(report.words_checked) +
           " words were not what their last writer left";
  }
  if (report.first) {
    text += ", first in block " + std::to_string(report.first->block) + ", read by operator " +
            std::to_string(report.first->launch) + " of iteration " +
            std::to_string(report.first->iteration);
  }
  if (report.words_checked != report.words_expected) {
    text += (text.empty() ? "" : "; ") + std::string("the GPU looked at ") +
            std::to_string(report.words_checked) + " words, not at " +
            std::to_string(report.words_expected);
  }
  return text;
}

}  // namespace sluice::replay
