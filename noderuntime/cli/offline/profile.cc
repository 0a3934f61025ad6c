// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/cli/offline/profile.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

#include "common/bytes.h"
#include "noderuntime/cli/offline/curve_svg.h"
#include "noderuntime/cli/offline/files.h"
#include "noderuntime/cli/offline/format.h"
#include "noderuntime/cli/offline/scenario.h"
#include "scheduler/profile/classes.h"
#include "scheduler/profile/held.h"
#include "scheduler/text/lines.h"
#include "scheduler/trace/at_batch.h"
#include "scheduler/trace/measured.h"

namespace sluice::cli {
namespace {

using scheduler::BlockClass;
using scheduler::CurvePoint;
using scheduler::kBlockClasses;

/// Everything that is said of an iteration.
struct Shown {
  std::string name;
  uint64_t batch = 0;
  std::string why_batch;  // where nobody asked for it
  uint64_t unit_bytes = 0;
  std::string machine;
  bool measured = false;  // times are those of a recording
  scheduler::Profile profile;
  scheduler::CyclePlan plan;
  std::vector<CurvePoint> curve;
  std::vector<uint64_t> held;  // while its host is as far ahead as its credit allows
  size_t peak = 0;             // place of the highest point
  double mean_bytes = 0;
  size_t blocks[kBlockClasses] = {};
};

/// Where none is asked for: one that the trace was made from, and why it is that.
std::pair<uint64_t, std::string> UsualBatch(const scheduler::trace::Trace& trace) {
  const Result<scheduler::trace::Measured> measured = scheduler::trace::MeasuredOf(trace);
  if (scheduler::trace::IsMeasured(trace) && measured.ok()) {
    return {measured->batch, "the one that was measured"};
  }
  if (const std::string* fitted = trace.Find("fitted_batches")) {
    const std::string first = fitted->substr(0, fitted->find(','));
    const Result<uint64_t> batch = scheduler::text::ReadNumber("fitted_batches", first);
    if (batch.ok() && *batch >= 1 && *batch <= scheduler::trace::kMaxBatch) {
      return {*batch, "the first of its fitted_batches; others: --batch"};
    }
  }
  return {1, "others: --batch"};
}

Result<Shown> Look(const ProfileOptions& options, const std::string& shipped) {
  ScenarioOptions asked;
  asked.gpu = options.gpu;
  asked.pool_bytes = 1;  // is not asked about
  const Result<Scenario> scenario = Scenario::Load(asked, shipped);
  if (!scenario.ok()) return scenario.status();
  const Result<NamedTrace> trace = ReadTrace(options.file);
  if (!trace.ok()) return trace.status();
  Shown shown;
  shown.batch = options.batch;
  if (options.batch == 0) std::tie(shown.batch, shown.why_batch) = UsualBatch(trace->trace);
  Result<scheduler::Profile> profile =
      scheduler::simulate::ProfileOf(trace->trace, shown.batch, scenario->machine());
  if (!profile.ok()) return profile.status().Annotate(options.file);
  shown.name = trace->name;
  shown.unit_bytes = options.unit_bytes;
  shown.machine = scenario->machine().name;
  shown.measured = scheduler::trace::IsMeasured(trace->trace);
  shown.profile = *std::move(profile);
  shown.plan = scheduler::PlanGates(
      shown.profile, options.unit_bytes,
      {.max_gates = options.max_gates, .placing = scheduler::Placing::kPacked});
  // ProfileOf has asked for the same batch.
  const auto at = scheduler::trace::AtBatch(trace->trace, shown.batch).value();
  const std::vector<double> times = scheduler::simulate::LaunchTimes(at, scenario->machine());
  shown.curve = scheduler::DemandCurve(trace->trace, at, times);
  for (const BlockClass kind : scheduler::Classify(trace->trace))
    ++shown.blocks[static_cast<size_t>(kind)];
  for (size_t i = 0; i < shown.curve.size(); ++i) {
    const auto bytes = static_cast<double>(shown.curve[i].total());
    shown.mean_bytes += bytes * times[i];
    if (shown.curve[i].total() > shown.curve[shown.peak].total()) shown.peak = i;
  }
  shown.mean_bytes /= static_cast<double>(shown.profile.iteration_ns);
  shown.held = scheduler::HeldUnderCredit(shown.profile, shown.plan.credit_ns);
  return shown;
}

nlohmann::json BytesByClass(const CurvePoint& point) {
  nlohmann::json json;
  for (size_t kind = 0; kind < kBlockClasses; ++kind) {
    json[std::string(scheduler::BlockClassName(static_cast<BlockClass>(kind)))] = point.bytes[kind];
  }
  return json;
}

std::string Json(const Shown& shown) {
  nlohmann::json json = {{"simulated", true},
                         {"name", shown.name},
                         {"batch", shown.batch},
                         {"machine", shown.machine},
                         {"measured", shown.measured},
                         {"launches", shown.profile.period},
                         {"iteration_ns", shown.profile.iteration_ns},
                         {"base_bytes", shown.profile.base_bytes},
                         {"peak_bytes", shown.profile.peak_bytes},
                         {"peak_launch", shown.peak},
                         {"mean_bytes", shown.mean_bytes},
                         {"credit_ns", shown.plan.credit_ns},
                         {"mean_held_bytes", scheduler::MeanHeld(shown.profile, shown.held)},
                         {"unit_bytes", shown.unit_bytes},
                         {"at_peak", BytesByClass(shown.curve[shown.peak])}};
  for (const scheduler::GatePlan& gate : shown.plan.gates) {
    json["gates"].push_back({{"launch", gate.launch},
                             {"need_units", gate.need_units},
                             {"contiguous_units", gate.contiguous}});
  }
  for (size_t i = 0; i < shown.curve.size(); ++i) {
    nlohmann::json entry = BytesByClass(shown.curve[i]);
    entry["ns"] = shown.curve[i].ns;
    entry["held"] = shown.held[i];
    json["curve"].push_back(std::move(entry));
  }
  return JsonText(json);
}

std::string Bar(double part) {
  constexpr double kColumns = 40;
  return std::string(static_cast<size_t>(std::clamp(part, 0.0, 1.0) * kColumns + 0.5), '#');
}

std::string Text(const Shown& shown) {
  const scheduler::Profile& profile = shown.profile;
  const auto peak_bytes = static_cast<double>(profile.peak_bytes);
  const CurvePoint& peak = shown.curve[shown.peak];
  std::string text = shown.name + " at batch " + std::to_string(shown.batch);
  if (!shown.why_batch.empty()) text += " (" + shown.why_batch + ")";
  text += ", simulated on " + shown.machine + "\n";
  text += Format("  iteration  %.1f ms of GPU time, %u launches\n",
                 static_cast<double>(profile.iteration_ns) / 1e6, profile.period);
  if (shown.measured) text += "  times      are those of the recording, whatever --gpu is\n";
  text += Format("  base       %s at the trough\n", FormatBytes(profile.base_bytes).c_str());
  text += Format("  peak       %s at launch %zu, after %.0f %% of the time\n",
                 FormatBytes(profile.peak_bytes).c_str(), shown.peak,
                 100 * peak.ns / static_cast<double>(profile.iteration_ns));
  text += Format("  mean       %s, %.2f of the peak\n",
                 FormatBytes(static_cast<uint64_t>(shown.mean_bytes)).c_str(),
                 shown.mean_bytes / peak_bytes);
  const double held = scheduler::MeanHeld(profile, shown.held);
  text += Format("  held       %s in the mean, with a credit of %.1f ms\n",
                 FormatBytes(static_cast<uint64_t>(held)).c_str(),
                 static_cast<double>(shown.plan.credit_ns) / 1e6);
  text += "\n  class            blocks     at the peak\n";
  for (size_t kind = 0; kind < kBlockClasses; ++kind) {
    text += Format("  %-14s %8zu  %14s  %s\n",
                   scheduler::BlockClassName(static_cast<BlockClass>(kind)).data(),
                   shown.blocks[kind], FormatBytes(peak.bytes[kind]).c_str(),
                   Bar(static_cast<double>(peak.bytes[kind]) / peak_bytes).c_str());
  }
  text += "\n  gate  launch       at (ms)            need\n";
  for (size_t k = 0; k < shown.plan.gates.size(); ++k) {
    const scheduler::GatePlan& gate = shown.plan.gates[k];
    const uint64_t need = gate.need_units * shown.unit_bytes;
    text +=
        Format("  %4zu  %6u  %12.2f  %14s  %s\n", k, gate.launch, shown.curve[gate.launch].ns / 1e6,
               FormatBytes(need).c_str(), Bar(static_cast<double>(need) / peak_bytes).c_str());
  }
  return text;
}

}  // namespace

Output RunProfile(const ProfileOptions& options, const std::string& shipped) {
  const Result<Shown> shown = Look(options, shipped);
  if (!shown.ok()) return Refused(shown.status());
  if (!options.svg.empty()) {
    const std::string title = shown->name + ", batch " + std::to_string(shown->batch) + ", " +
                              shown->machine + ": what lives when, by class";
    const std::string svg =
        CurveSvg(shown->curve, static_cast<double>(shown->profile.iteration_ns), title);
    if (Status status = WriteWholeFile(options.svg, svg); !status.ok()) return Refused(status);
  }
  return {0, options.json ? Json(*shown) : Text(*shown), ""};
}

}  // namespace sluice::cli
