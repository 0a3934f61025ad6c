// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/cli/offline/max_batch.h"

#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>

#include "common/bytes.h"
#include "noderuntime/cli/offline/format.h"
#include "noderuntime/cli/offline/scenario.h"
#include "noderuntime/cli/offline/simulate.h"
#include "scheduler/simulate/max_batch.h"
#include "scheduler/trace/measured.h"

namespace sluice::cli {
namespace {

using scheduler::simulate::BatchesAt;
using scheduler::simulate::LargestBatch;
using scheduler::simulate::LargestBatchFromAbove;
using scheduler::simulate::Workload;

struct Point {  // one choice of batches
  std::vector<uint64_t> batches;
  Scenario::Answer answer;
};

class Question {
 public:
  Question(const Scenario& scenario, const std::vector<NamedTrace>& traces)
      : scenario_(scenario), traces_(traces) {}

  /// The largest batch of each job with all that they may use for itself. An error names the one
  /// that has none.
  Status FindAlone() {
    for (const NamedTrace& trace : traces_) {
      const auto batch = LargestBatch(scheduler::trace::kMaxBatch, [&](uint64_t samples) {
        const Result<Workload> job = scenario_.Make(trace, samples);
        return job.ok() && scenario_.Fits({*job});
      });
      if (!batch) {
        const Result<Workload> job = scenario_.Make(trace, 1);
        if (!job.ok()) return job.status();
        return Status(StatusCode::kResourceExhausted,
                      trace.name + " needs " + FormatBytes(scenario_.NeededBytes(*job)) +
                          " with a batch of one sample" + scenario_.HowPlaced() + ", the " +
                          (scenario_.HasBudget() ? "budget" : "pool") + " has " +
                          FormatBytes(scenario_.UsableBytes(1)));
      }
      alone_.push_back(*batch);
    }
    return Status();
  }

  std::vector<Workload> JobsAt(uint64_t first) const {
    std::vector<Workload> jobs;
    const std::vector<uint64_t> batches = BatchesAt(alone_, first);
    for (size_t i = 0; i < traces_.size(); ++i) {
      jobs.push_back(
          scenario_.Make(traces_[i], batches[i]).value());  // up to alone_, it can be made
    }
    return jobs;
  }

  std::optional<uint64_t> LargestThatFits() const {
    return LargestBatch(alone_.front(),
                        [&](uint64_t first) { return scenario_.Fits(JobsAt(first)); });
  }

  /// Of those from `most` down, at which they do as `at_most` says. Each of them is looked at once:
  /// with `auto` it takes a search of its own.
  std::optional<Point> LargestThatKeeps(uint64_t most, const Point& at_most, double part) const {
    std::optional<Point> kept;
    LargestBatchFromAbove(most, [&](uint64_t first) {
      Result<Point> point = first == most ? at_most : At(first);
      if (!point.ok() || point->answer.outcome.Throughput() < part * point->answer.unlimited) {
        return false;
      }
      kept = *std::move(point);
      return true;
    });
    return kept;
  }

  Result<Point> At(uint64_t first) const {
    Result<Scenario::Answer> answer = scenario_.Share(JobsAt(first));
    if (answer.ok()) return Point{BatchesAt(alone_, first), *std::move(answer)};
    return answer.status().Annotate(Named(BatchesAt(alone_, first)));
  }

  const std::vector<uint64_t>& alone() const { return alone_; }

 private:
  /// "resnet50 at a batch of 64 samples, ...": in an error.
  std::string Named(const std::vector<uint64_t>& batches) const {
    std::string text;
    for (size_t i = 0; i < traces_.size(); ++i) {
      text += (i == 0 ? "" : ", ") + traces_[i].name + " at a batch of " +
              std::to_string(batches[i]) + " samples";
    }
    return text;
  }

  const Scenario& scenario_;
  const std::vector<NamedTrace>& traces_;
  std::vector<uint64_t> alone_;
};

nlohmann::json JsonOf(const Point& point, const std::vector<NamedTrace>& traces,
                      const std::vector<uint64_t>& alone, const ScenarioOptions& asked) {
  nlohmann::json json = {
      {"throughput", point.answer.outcome.Throughput()},
      {"throughput_temporal", point.answer.temporal},
      {"throughput_unlimited_memory", point.answer.unlimited},
      {"shared_by", Describe(point.answer.setting, asked.unit_bytes)},
      {"flags", FlagsOf(point.answer.setting, asked.unit_bytes, asked.host_units)}};
  for (size_t i = 0; i < traces.size(); ++i) {
    json["jobs"].push_back(
        {{"name", traces[i].name},
         {"batch", point.batches[i]},
         {"batch_alone", alone[i]},
         {"ratio", static_cast<double>(point.batches[i]) / static_cast<double>(alone[i])}});
  }
  return json;
}

std::string TextOf(const std::string& title, const Point& point,
                   const std::vector<NamedTrace>& traces, const std::vector<uint64_t>& alone,
                   const ScenarioOptions& asked) {
  std::string text = title + "\n";
  char line[256];
  for (size_t i = 0; i < traces.size(); ++i) {
    std::snprintf(line, sizeof line, "  %-16s %7lu samples, %.2f of the %lu it could have alone\n",
                  traces[i].name.c_str(), point.batches[i],
                  static_cast<double>(point.batches[i]) / static_cast<double>(alone[i]), alone[i]);
    text += line;
  }
  const double throughput = point.answer.outcome.Throughput();
  std::snprintf(
      line, sizeof line,
      "  throughput       %.3f; %.3f times that of taking turns; %.3f of unlimited memory\n",
      throughput, point.answer.temporal > 0 ? throughput / point.answer.temporal : 0,
      throughput / point.answer.unlimited);
  return text + line + SharedBy(point.answer.setting, asked);
}

}  // namespace

Output RunMaxBatch(const MaxBatchOptions& options, const std::string& shipped) {
  const Result<Scenario> scenario = Scenario::Load(options.scenario, shipped);
  if (!scenario.ok()) return Refused(scenario.status());
  std::vector<NamedTrace> traces;
  for (const std::string& file : options.files) {
    Result<NamedTrace> trace = ReadTrace(file);
    if (!trace.ok()) return Refused(trace.status());
    if (scheduler::trace::IsMeasured(trace->trace)) {
      return Refused(Status(StatusCode::kInvalidArgument,
                            file + ": was measured on a live job, at one batch: nothing tells what "
                                   "others need; allowed: traces with bytes per sample"));
    }
    traces.push_back(*std::move(trace));
  }
  const auto too_large = [&](const std::string& why) { return DoNotFit(why, options.json); };
  if (Status status = scenario->CheckPool(traces.size()); !status.ok()) {
    return status.code() == StatusCode::kResourceExhausted ? too_large(status.message())
                                                           : Refused(status);
  }
  Question question(*scenario, traces);
  if (Status status = question.FindAlone(); !status.ok()) {
    return status.code() == StatusCode::kResourceExhausted ? too_large(status.message())
                                                           : Refused(status);
  }
  const std::optional<uint64_t> most = question.LargestThatFits();
  if (!most) return too_large("not even with a batch of one sample each" + scenario->HowPlaced());
  const Result<Point> fits = question.At(*most);
  if (!fits.ok()) {
    return fits.status().code() == StatusCode::kResourceExhausted
               ? too_large(fits.status().message())
               : Refused(fits.status());
  }
  std::optional<Point> keeps;
  if (options.keep_percent > 0) {
    keeps = question.LargestThatKeeps(*most, *fits, options.keep_percent / 100.0);
  }
  const ScenarioOptions& asked = options.scenario;
  const std::string keep_title =
      "keeps " + std::to_string(options.keep_percent) + " % of unlimited memory's throughput";
  if (options.json) {
    nlohmann::json json = {{"simulated", true},
                           {"machine", scenario->machine().name},
                           {"pool_bytes", scenario->PoolBytes(traces.size())},
                           {"placing", scheduler::PlacingName(asked.placing)},
                           {"fits", JsonOf(*fits, traces, question.alone(), asked)},
                           {"keeps", nullptr}};
    if (keeps) json["keeps"] = JsonOf(*keeps, traces, question.alone(), asked);
    return {0, JsonText(json), ""};
  }
  std::string text = "simulated on " + scenario->machine().name + ", pool " +
                     FormatBytes(scenario->PoolBytes(traces.size())) + "\n" +
                     Placed(asked, fits->answer) +
                     TextOf("largest batches that fit", *fits, traces, question.alone(), asked);
  if (keeps) {
    text += TextOf("largest that " + keep_title, *keeps, traces, question.alone(), asked);
  } else if (options.keep_percent > 0) {
    text += "no batch " + keep_title + "\n";
  }
  return {0, text, ""};
}

}  // namespace sluice::cli
