// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/cli/offline/place.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "common/bytes.h"
#include "noderuntime/cli/offline/files.h"
#include "noderuntime/cli/offline/format.h"
#include "scheduler/place/offline/from_trace.h"
#include "scheduler/place/offline/leased.h"
#include "scheduler/trace/parse.h"

namespace sluice::cli {
namespace {

using scheduler::Instance;
using scheduler::PlaceAnswer;
using scheduler::PlaceObjective;

constexpr std::string_view kTraceStart = "# sluice-trace ";

Status Wrong(std::string message) { return {StatusCode::kInvalidArgument, std::move(message)}; }

Result<Instance> ReadBuffers(const PlaceOptions& options) {
  const Result<std::string> text = ReadWholeFile(options.file);
  if (!text.ok()) return text.status();
  if (!text->starts_with(kTraceStart)) {
    if (options.batch != 0) {
      return Wrong("--batch: " + options.file + " is a table of buffers, only a trace has a batch");
    }
    if (options.granule_bytes != 1) {
      return Wrong("--granule: " + options.file +
                   " is a table of buffers, only a trace's sizes are rounded");
    }
    Result<Instance> instance = scheduler::ParseInstance(*text);
    return instance.ok() ? instance : instance.status().Annotate(options.file);
  }
  const Result<scheduler::trace::Trace> trace = scheduler::trace::ParseTrace(*text);
  if (!trace.ok()) return trace.status().Annotate(options.file);
  if (options.batch == 0) {
    return Wrong("--batch: needed for " + options.file + ", a memory trace; allowed: from 1 to " +
                 std::to_string(scheduler::trace::kMaxBatch) + " samples");
  }
  Result<Instance> instance = scheduler::InstanceOf(*trace, options.batch, options.granule_bytes);
  return instance.ok() ? instance : instance.status().Annotate(options.file);
}

// What is said of a placement.
struct Report {
  size_t buffers = 0;
  PlaceAnswer answer;
  bool fits = true;
  double mean_leased = 0;  // bytes, over the time from the first buffer to the last one's end
  double least_mean_leased = 0;
};

Report Describe(const PlaceOptions& options, const Instance& instance, PlaceAnswer answer) {
  Report report;
  report.buffers = instance.buffers.size();
  report.fits = answer.footprint <= options.capacity_bytes.value_or(answer.footprint);
  uint64_t first = ~uint64_t{0};
  uint64_t last = 0;
  for (const scheduler::Buffer& buffer : instance.buffers) {
    first = std::min(first, buffer.lower);
    last = std::max(last, buffer.upper);
  }
  if (last > first) {
    const auto time = static_cast<double>(last - first);
    const uint64_t unit = options.unit_bytes;
    report.mean_leased = scheduler::LeasedIntegral(instance.buffers, answer.offsets, unit) / time;
    report.least_mean_leased = scheduler::LeastLeasedIntegral(instance.buffers, unit) / time;
  }
  report.answer = std::move(answer);
  return report;
}

std::string_view NameOf(PlaceObjective objective) {
  return objective == PlaceObjective::kLeased ? "leased" : "footprint";
}

std::string Json(const PlaceOptions& options, const Report& report) {
  nlohmann::json json = {{"file", options.file},
                         {"buffers", report.buffers},
                         {"objective", NameOf(options.objective)},
                         {"footprint_bytes", report.answer.footprint},
                         {"lower_bound_bytes", report.answer.lower_bound},
                         {"method", report.answer.method},
                         {"unit_bytes", options.unit_bytes},
                         {"mean_leased_bytes", report.mean_leased},
                         {"least_mean_leased_bytes", report.least_mean_leased},
                         {"capacity_bytes", nullptr},
                         {"fits", report.fits}};
  if (options.capacity_bytes.has_value()) json["capacity_bytes"] = *options.capacity_bytes;
  return JsonText(json);
}

std::string Line(const char* what, const std::string& text) {
  return Format("  %-12s %s\n", what, text.c_str());
}

std::string BytesOf(uint64_t bytes) {
  return FormatBytes(bytes) + " (" + std::to_string(bytes) + " bytes)";
}

double Ratio(double value, double least) { return least > 0 ? value / least : 1; }

std::string Text(const PlaceOptions& options, const Report& report) {
  const PlaceAnswer& answer = report.answer;
  std::string text = options.file + ": " + std::to_string(report.buffers) + " buffers\n";
  text += Line("footprint", Format("%s, %.4f of the lower bound", BytesOf(answer.footprint).c_str(),
                                   Ratio(static_cast<double>(answer.footprint),
                                         static_cast<double>(answer.lower_bound))));
  text += Line("lower bound", BytesOf(answer.lower_bound));
  text += Line("method", answer.method);
  text += Line("leased", Format("%s in the mean, in units of %s; %.4f of the least",
                                FormatBytes(static_cast<uint64_t>(report.mean_leased)).c_str(),
                                FormatBytes(options.unit_bytes).c_str(),
                                Ratio(report.mean_leased, report.least_mean_leased)));
  if (!options.capacity_bytes.has_value()) return text;
  const uint64_t capacity = *options.capacity_bytes;
  const char* verdict = report.fits                     ? "it fits"
                        : answer.lower_bound > capacity ? "no placement fits"
                                                        : "none found that fits";
  return text + Line("capacity", Format("%s: %s", BytesOf(capacity).c_str(), verdict));
}

}  // namespace

Output RunPlace(const PlaceOptions& options) {
  const Result<Instance> instance = ReadBuffers(options);
  if (!instance.ok()) return Refused(instance.status());
  scheduler::PlaceRequest request;
  request.buffers = instance->buffers;
  request.capacity = options.capacity_bytes;
  request.objective = options.objective;
  request.unit_bytes = options.unit_bytes;
  request.effort = options.effort;
  Result<PlaceAnswer> answer = scheduler::SolvePlacement(request);
  if (!answer.ok()) return Refused(answer.status().Annotate(options.file));
  const Status judged =
      scheduler::ValidatePlacement(instance->buffers, answer->offsets, answer->footprint);
  if (!judged.ok()) return Refused(judged.Annotate(options.file + ": the placement is wrong"));
  const Report report = Describe(options, *instance, *std::move(answer));
  // A table that is there looks like an answer.
  if (report.fits && !options.output.empty()) {
    const std::string table = scheduler::WriteInstance(*instance, report.answer.offsets);
    if (Status status = WriteWholeFile(options.output, table); !status.ok()) return Refused(status);
  }
  return {report.fits ? 0 : 1, options.json ? Json(options, report) : Text(options, report), ""};
}

}  // namespace sluice::cli
