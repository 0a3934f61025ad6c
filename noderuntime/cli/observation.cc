// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/cli/observation.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <vector>

#include "common/bytes.h"
#include "noderuntime/cli/offline/format.h"
#include "scheduler/profile/recorded_trace.h"
#include "scheduler/simulate/simulate.h"
#include "scheduler/text/lines.h"
#include "scheduler/trace/at_batch.h"
#include "scheduler/trace/measured.h"

namespace sluice::cli {
namespace {

using scheduler::simulate::Workload;

/// What two ResNet-50 lost by time slices on an H100, in slices of 2 ms; on an H200 it was more
/// (docs/design/simulation.md).
constexpr uint64_t kSwitchNs = 160'000;

/// By the clock; 0: it was not measured, or the file says nothing that can be.
uint64_t ClockNs(const scheduler::trace::Trace& trace) {
  const std::string* text = trace.Find(scheduler::kIterationNsKey);
  if (text == nullptr) return 0;
  const Result<uint64_t> ns = scheduler::text::ReadNumber(scheduler::kIterationNsKey, *text);
  return ns.ok() ? *ns : 0;
}

/// One such job on this GPU, and the scenario it was made for.
struct Model {
  Scenario scenario;
  Workload job;
  double iteration_ns = 0;  // alone, by the clock if it was measured
};

Result<Model> MakeModel(const NamedTrace& trace, uint64_t batch, const ObservedGpu& gpu,
                        double gap_ns) {
  Machine machine;
  machine.name = gpu.name;
  ScenarioOptions options;
  options.pool_bytes = gpu.pool_bytes;
  options.unit_bytes = gpu.unit_bytes;
  options.gap_ns = gap_ns;
  options.switch_ns = kSwitchNs;
  options.policy = "flow";
  options.setting.claims = scheduler::Claims::kSteps;  // as a live node does by default
  Result<Scenario> scenario = Scenario::On(std::move(machine), options);
  if (!scenario.ok()) return scenario.status();
  Result<Workload> job = scenario->Make(trace, batch);
  if (!job.ok()) return job.status();
  const Result<Scenario::Answer> alone = scenario->Share({*job});
  if (!alone.ok()) return alone.status();
  return Model{*std::move(scenario), *std::move(job), alone->outcome.jobs.front().iteration_ns};
}

/// What the clock says beyond the model's own iteration is taken to be the host's, between two
/// iterations, while its GPU has nothing to do.
Result<Model> ModelByClock(const NamedTrace& trace, uint64_t batch, const ObservedGpu& gpu,
                           double* gap_ns) {
  Result<Model> model = MakeModel(trace, batch, gpu, 0);
  const auto clock_ns = static_cast<double>(ClockNs(trace.trace));
  if (!model.ok() || clock_ns <= model->iteration_ns) return model;
  *gap_ns = clock_ns - model->iteration_ns;
  model = MakeModel(trace, batch, gpu, *gap_ns);
  // The model's host goes on while its GPU works; what was measured counts.
  if (model.ok()) model->iteration_ns = clock_ns;
  return model;
}

std::string IterationText(const Workload& job, const scheduler::trace::BatchTrace& at,
                          uint64_t clock_ns) {
  std::string text = Format("iteration: %zu launches, %.3f ms of GPU time", job.kernels.size(),
                            job.alone_ns / 1e6);
  if (clock_ns != 0) text += Format(", %.3f ms by the clock", static_cast<double>(clock_ns) / 1e6);
  const uint64_t kept = at.persistent_bytes + at.input_bytes;
  text += "\nmemory: peak " + FormatBytes(job.peak_bytes) + "; base " +
          FormatBytes(job.base_bytes) + " at the trough";
  if (kept != at.trough_bytes) text += ", " + FormatBytes(kept) + " of it through all of it";
  return text + "; " + FormatBytes(at.peak_bytes) + " at most come and go\n";
}

/// As one word of a shell's line, and no flag.
std::string ShellWord(const std::string& text) {
  const std::string word = text.starts_with('-') ? "./" + text : text;
  const bool plain = std::all_of(word.begin(), word.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 ||
           std::string_view("_./:,+@%-").find(static_cast<char>(c)) != std::string_view::npos;
  });
  if (plain && !word.empty()) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

}  // namespace

Result<ObservedGpu> ReadObservedGpu(const std::string& status_json) {
  const nlohmann::json json = nlohmann::json::parse(status_json, nullptr, false);
  const auto number = [&json](const char* key) {
    const auto found = json.find(key);
    return found != json.end() && found->is_number_unsigned() ? found->get<uint64_t>() : 0;
  };
  ObservedGpu gpu;
  if (json.is_object()) {
    gpu.pool_bytes = number("pool_bytes");
    gpu.unit_bytes = number("unit_bytes");
    const auto name = json.find("gpu_name");
    if (name != json.end() && name->is_string()) gpu.name = name->get<std::string>();
  }
  if (gpu.pool_bytes != 0 && gpu.unit_bytes != 0) return gpu;
  return Status(StatusCode::kUnavailable, "sluice-noded: its status does not tell the pool");
}

Result<std::string> DescribeObservation(const NamedTrace& trace, const std::string& file,
                                        const ObservedGpu& gpu) {
  const Result<scheduler::trace::Measured> measured = scheduler::trace::MeasuredOf(trace.trace);
  if (!measured.ok()) return measured.status();
  const uint64_t batch = measured->batch;
  const auto at = scheduler::trace::AtBatch(trace.trace, batch);
  if (!at.ok()) return at.status();
  double gap_ns = 0;
  const Result<Model> model = ModelByClock(trace, batch, gpu, &gap_ns);
  if (!model.ok()) return model.status();
  const Workload& job = model->job;
  std::string text = IterationText(job, *at, ClockNs(trace.trace));

  const std::vector<Workload> two = {job, job};
  const uint64_t turns =
      scheduler::simulate::LeastPool({{&two[0], 0}, {&two[1], 0}}) * gpu.unit_bytes;
  const uint64_t side_by_side = uint64_t{2} * job.plan.peak_units * gpu.unit_bytes;
  text += "two of these: " + FormatBytes(turns) + " to take turns, " + FormatBytes(side_by_side) +
          " to run side by side; the pool has " + FormatBytes(gpu.pool_bytes) + "\n";
  const double stagger_ns = std::round(model->iteration_ns / 2);
  const Result<Scenario::Answer> answer = model->scenario.Share(two, stagger_ns);
  double longest = 0;
  if (answer.ok()) {
    for (const auto& outcome : answer->outcome.jobs) {
      longest = std::max(longest, outcome.iteration_ns);
    }
    text += Format(
        "two of these in this pool would finish in %.2f of the time of one after the other: an "
        "iteration takes %.1f ms together, %.1f ms alone (simulated: policy flow, time slices, the "
        "second begins half an iteration later",
        longest / (2 * model->iteration_ns), longest / 1e6, model->iteration_ns / 1e6);
    if (ClockNs(trace.trace) == 0) {
      text += "; what the host does between two iterations is not known";
    }
    text += ")\n";
  } else if (answer.status().code() == StatusCode::kResourceExhausted) {
    text += "two of these do not fit in this pool: " + answer.status().message() + "\n";
  } else {
    return answer.status();
  }
  const std::string job_word = ShellWord(file + ":" + std::to_string(batch));
  const std::string command =
      "sluice simulate " + job_word + " " + job_word + " --sharing timeslice --switch " +
      std::to_string(kSwitchNs) + "ns --pool " + std::to_string(gpu.pool_bytes) + " --unit " +
      std::to_string(gpu.unit_bytes) + (gap_ns > 0 ? Format(" --gap %.0fns", gap_ns) : "");
  if (longest > 0) {
    text +=
        "the same as a table (its throughput is GPU time per time, its alone without the "
        "host): " +
        command + Format(" --stagger %.0fns ", stagger_ns) +
        FlagsOf(answer->setting, gpu.unit_bytes) + "\n";
  }
  return text + "the best way to share: " + command + "\n";
}

}  // namespace sluice::cli
