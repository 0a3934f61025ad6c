// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/cli/demo_report.h"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "common/bytes.h"

namespace sluice::cli {
namespace {

constexpr size_t kPictureIterations = 4;
constexpr size_t kNameColumns = 44;
/// Without the credit a job launches a whole iteration ahead and holds its peak throughout: less
/// than this share of the lending is left.
constexpr double kCollapse = 0.5;

std::string Row(const std::string& name, const std::string& value, const std::string& note = "") {
  char line[256];
  std::snprintf(line, sizeof line, "  %-*s %14s  %s", static_cast<int>(kNameColumns), name.c_str(),
                value.c_str(), note.c_str());
  std::string text = line;
  text.erase(text.find_last_not_of(' ') + 1);
  return text + "\n";
}

std::string Seconds(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3f s", seconds);
  return text;
}

std::string Percent(double part, double whole) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %%", whole == 0 ? 0 : 100 * part / whole);
  return text;
}

std::string Times(double part, double whole) {
  char text[48];
  std::snprintf(text, sizeof text, "%.2f of one after another", whole == 0 ? 0 : part / whole);
  return text;
}

void CheckShared(const SharedResult& run, std::vector<std::string>& failed) {
  const std::string name = "policy " + run.policy + (run.credit ? "" : " without credit") + ": ";
  if (!run.failure.empty()) failed.push_back(name + "a job did not finish: " + run.failure);
  if (!run.loss_difference.empty()) {
    failed.push_back(name + "losses differ from the solo run: " + run.loss_difference);
  }
  if (run.over_budget_moments != 0) {
    failed.push_back(name + std::to_string(run.over_budget_moments) + " moments over the budget");
  }
  if (run.over_limit_moments != 0) {
    failed.push_back(name + std::to_string(run.over_limit_moments) +
                     " moments over a claim or limit");
  }
  if (run.oracle_violations != 0) {
    failed.push_back(name + std::to_string(run.oracle_violations) +
                     " kernels touched memory that their job did not hold");
  }
  for (const std::string& violation : run.violations) failed.push_back(name + violation);
}

}  // namespace

uint64_t DemoResult::peak_sum() const {
  uint64_t sum = 0;
  for (const SoloResult& run : solo) sum += run.peak_bytes;
  return sum;
}

double DemoResult::solo_seconds() const {
  double sum = 0;
  for (const SoloResult& run : solo) sum += run.seconds;
  return sum;
}

std::vector<std::string> FailedAssertions(const DemoResult& result) {
  std::vector<std::string> failed;
  if (static_cast<double>(result.pool_bytes) >=
      kEndPoolFraction * static_cast<double>(result.peak_sum())) {
    failed.push_back("the pool is not smaller than 65 % of the sum of the solo peaks");
  }
  if (result.crowded && !result.crowded->out_of_memory) {
    failed.push_back("no job ran out of memory without Sluice");
  }
  CheckShared(result.flow, failed);
  CheckShared(result.temporal, failed);
  CheckShared(result.credit_off, failed);
  if (result.flow.lent_bytes == 0) {
    failed.push_back("policy flow: nothing was lent within iterations");
  }
  if (result.temporal.lent_bytes != 0) {
    failed.push_back("policy temporal: " + FormatBytes(result.temporal.lent_bytes) +
                     " were lent within iterations, must be exactly 0");
  }
  if (result.credit_off.lent_bytes_per_iteration() >
      kCollapse * result.flow.lent_bytes_per_iteration()) {
    failed.push_back("lending did not collapse without the credit");
  }
  return failed;
}

std::string RenderReport(const DemoResult& result, bool colour) {
  const std::string mark = result.options.real_gpu ? "" : "simulated";
  const double sum = static_cast<double>(result.peak_sum());
  std::string text = "Memory held by each job, a few iterations of the run under policy flow";
  text += mark.empty() ? "\n\n" : " (" + mark + ")\n\n";
  ChartStyle style;
  style.colour = colour;
  text += RenderChart(result.history, MiddleWindow(result.history, kPictureIterations), style);
  text += "\n";
  for (const SoloResult& run : result.solo) {
    text += Row("solo peak of " + run.job.label + " (" + run.job.model + ", seed " +
                    std::to_string(run.job.seed) + ")",
                FormatBytes(run.peak_bytes), mark);
  }
  text += Row("sum of the solo peaks", FormatBytes(result.peak_sum()), mark);
  text += Row("pool", FormatBytes(result.pool_bytes),
              Percent(static_cast<double>(result.pool_bytes), sum) + " of the sum");
  if (result.crowded) {
    text += Row("without Sluice", result.crowded->out_of_memory ? "out of memory" : "fits",
                result.crowded->job);
  }
  const auto per_iteration = [](const SharedResult& run) {
    return FormatBytes(static_cast<uint64_t>(run.lent_bytes_per_iteration())) + " per iteration";
  };
  text += Row("lent within iterations, flow", FormatBytes(result.flow.lent_bytes),
              per_iteration(result.flow));
  text += Row("lent within iterations, temporal", FormatBytes(result.temporal.lent_bytes),
              per_iteration(result.temporal));
  text += Row("lent within iterations, flow without credit",
              FormatBytes(result.credit_off.lent_bytes), per_iteration(result.credit_off));
  text += Row("moments over the budget", std::to_string(result.flow.over_budget_moments));
  text += Row("oracle violations", std::to_string(result.flow.oracle_violations));
  text +=
      Row("losses bit-equal to the solo runs",
          result.flow.loss_difference.empty() && result.temporal.loss_difference.empty() ? "yes"
                                                                                         : "NO");
  const double alone = result.solo_seconds();
  text += Row("time, one after another", Seconds(alone), mark);
  text += Row("time, temporal", Seconds(result.temporal.seconds),
              Times(result.temporal.seconds, alone) + (mark.empty() ? "" : ", " + mark));
  text += Row("time, shared (flow)", Seconds(result.flow.seconds),
              Times(result.flow.seconds, alone) + (mark.empty() ? "" : ", " + mark));
  return text;
}

std::string RenderJson(const DemoResult& result) {
  nlohmann::ordered_json json;
  json["simulated"] = !result.options.real_gpu;
  json["jobs"] = result.solo.size();
  json["iterations"] = result.options.iterations;
  json["seed"] = result.options.seed;
  json["solo_peak_bytes"] = nlohmann::ordered_json::array();
  for (const SoloResult& run : result.solo) json["solo_peak_bytes"].push_back(run.peak_bytes);
  json["pool_bytes"] = result.pool_bytes;
  if (result.crowded) {
    json["oom_without_sluice"] = result.crowded->out_of_memory;
  } else {
    json["oom_without_sluice"] = nullptr;
  }
  json["losses_bit_equal"] =
      result.flow.loss_difference.empty() && result.temporal.loss_difference.empty();
  json["lent_bytes_within_iterations"] = result.flow.lent_bytes;
  json["lent_bytes_within_iterations_temporal"] = result.temporal.lent_bytes;
  json["lent_bytes_per_iteration_credit_on"] = result.flow.lent_bytes_per_iteration();
  json["lent_bytes_per_iteration_credit_off"] = result.credit_off.lent_bytes_per_iteration();
  json["over_budget_moments"] = result.flow.over_budget_moments +
                                result.temporal.over_budget_moments +
                                result.credit_off.over_budget_moments;
  json["oracle_violations"] = result.flow.oracle_violations + result.temporal.oracle_violations +
                              result.credit_off.oracle_violations;
  json[result.options.real_gpu ? "wall_s" : "simulated_s"] = {{"solo_sum", result.solo_seconds()},
                                                              {"temporal", result.temporal.seconds},
                                                              {"shared", result.flow.seconds}};
  json["failed_assertions"] = FailedAssertions(result);
  return json.dump(2) + "\n";
}

}  // namespace sluice::cli
