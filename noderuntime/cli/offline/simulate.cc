// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/cli/offline/simulate.h"

#include <nlohmann/json.hpp>
#include <set>

#include "common/bytes.h"
#include "noderuntime/cli/offline/format.h"
#include "noderuntime/cli/offline/scenario.h"
#include "scheduler/policy/policies.h"
#include "scheduler/trace/measured.h"

namespace sluice::cli {
namespace {

using scheduler::simulate::Drain;
using scheduler::simulate::JobOutcome;
using scheduler::simulate::Outcome;
using scheduler::simulate::PagingTotals;
using scheduler::simulate::Setting;
using scheduler::simulate::Workload;

/// Nobody waits for memory under it.
bool Unmanaged(const Setting& setting) {
  return setting.policy.policy == scheduler::kSpatialPolicy;
}

/// Some bases are in host memory by turns.
bool ByTurns(const Setting& setting) { return setting.policy.residents != 0; }

nlohmann::json JsonOf(const Setting& setting, uint64_t unit_bytes) {
  nlohmann::json json = {{"policy", setting.policy.policy}};
  if (Unmanaged(setting) || setting.policy.policy == "temporal") return json;
  json["lanes"] = setting.policy.lanes;
  json["claims"] = scheduler::ClaimsName(setting.claims);
  json["drain"] = setting.drain == Drain::kNever                ? "never"
                  : setting.drain == Drain::kWhenOthersAreThere ? "when others are there"
                                                                : "when others wait";
  if (setting.claims == scheduler::Claims::kSteps) json["steps"] = setting.steps;
  json["credit_part_of_iteration"] = 1 / setting.credit_parts;
  const auto bytes = [&](scheduler::Units units) {
    return units == 0 ? nlohmann::json() : nlohmann::json(units * unit_bytes);
  };
  json["budget_bytes"] = bytes(setting.budget);
  json["soft_budget_bytes"] = bytes(setting.policy.soft_budget);
  json["phase"] = setting.policy.phase;
  if (setting.policy.policy == "nodegroup") json["groups"] = setting.policy.groups_per_peak;
  json["residents"] = nullptr;  // all
  json["slice_ms"] = nullptr;
  if (ByTurns(setting)) {
    json["residents"] = setting.policy.residents;
    json["slice_ms"] = static_cast<double>(setting.policy.slice_ns) / 1e6;
  }
  return json;
}

/// Of one job, at the mean.
double MovedPerIteration(const Outcome& outcome) {
  double iterations = 0;
  for (const JobOutcome& job : outcome.jobs) iterations += job.iterations;
  return static_cast<double>(outcome.paging.moved_bytes()) / std::max(iterations, 1.0);
}

struct Shown {
  const SimulateOptions& options;
  const Scenario& scenario;
  const std::vector<NamedTrace>& traces;
  const std::vector<Workload>& jobs;
  const Scenario::Answer& answer;
};

/// Whose base is away when the measurement begins or ends does its whole iterations in less than
/// all of its time.
double IterationNs(const Shown& shown, size_t job) {
  const JobOutcome& outcome = shown.answer.outcome.jobs[job];
  const bool whole = !ByTurns(shown.answer.setting) || outcome.progress <= 0;
  return whole ? outcome.iteration_ns : shown.jobs[job].alone_ns / outcome.progress;
}

std::string Json(const Shown& shown) {
  const uint64_t unit = shown.options.scenario.unit_bytes;
  const Scenario::Answer& answer = shown.answer;
  nlohmann::json json = {
      {"simulated", true},
      {"machine", shown.scenario.machine().name},
      {"pool_bytes", shown.scenario.PoolBytes(shown.jobs.size())},
      {"unit_bytes", unit},
      {"placing", scheduler::PlacingName(shown.options.scenario.placing)},
      {"tight", answer.tight},
      {"setting", JsonOf(answer.setting, unit)},
      {"flags", FlagsOf(answer.setting, unit, shown.options.scenario.host_units)},
      {"throughput", answer.outcome.Throughput()},
      {"throughput_temporal", answer.temporal},
      {"throughput_unlimited_memory", answer.unlimited},
      {"most_held_bytes", nullptr}};
  if (!Unmanaged(answer.setting)) json["most_held_bytes"] = answer.outcome.most_held * unit;
  if (answer.paged) {
    const PagingTotals& paging = answer.outcome.paging;
    json["paging"] = {{"moved_bytes", paging.moved_bytes()},
                      {"to_gpu_bytes", paging.in_bytes},
                      {"to_host_bytes", paging.out_bytes},
                      {"moved_bytes_per_iteration", MovedPerIteration(answer.outcome)},
                      {"fault_groups", paging.fault_groups},
                      {"busy_part", paging.busy_ns / answer.outcome.elapsed_ns}};
  }
  for (size_t i = 0; i < shown.jobs.size(); ++i) {
    const Workload& job = shown.jobs[i];
    const JobOutcome& outcome = answer.outcome.jobs[i];
    json["jobs"].push_back(
        {{"name", job.name},
         {"batch", shown.options.jobs[i].batch},
         {"measured", scheduler::trace::IsMeasured(shown.traces[i].trace)},
         {"base_bytes", job.base_bytes},
         {"peak_bytes", job.peak_bytes},
         {"gpu_ms_alone", job.alone_ns / 1e6},
         {"iteration_ms", IterationNs(shown, i) / 1e6},
         {"samples_per_s",
          static_cast<double>(shown.options.jobs[i].batch) / IterationNs(shown, i) * 1e9},
         {"progress", outcome.progress},
         {"waited_ms_per_iteration", outcome.waited_ns / 1e6 / std::max(outcome.iterations, 1u)}});
    if (!Unmanaged(answer.setting)) {
      json["jobs"].back()["most_held_bytes"] =
          outcome.most_held * shown.options.scenario.unit_bytes;
    }
    if (ByTurns(answer.setting)) json["jobs"].back()["swaps"] = outcome.evictions;
  }
  return JsonText(json);
}

/// Nothing where all times are the machine's.
std::string WhoseTimes(const std::vector<NamedTrace>& traces) {
  std::set<std::string> measured;
  for (const NamedTrace& trace : traces) {
    if (scheduler::trace::IsMeasured(trace.trace)) measured.insert(trace.name);
  }
  std::string names;
  for (const std::string& name : measured) names += (names.empty() ? "" : ", ") + name;
  if (names.empty()) return "";
  return "  times            of " + names + " are those of " +
         (measured.size() == 1 ? "its recording" : "their recordings") + ", whatever --gpu is\n";
}

/// By all at once, and by each.
std::string Held(const Shown& shown) {
  const uint64_t unit = shown.options.scenario.unit_bytes;
  const Outcome& outcome = shown.answer.outcome;
  std::string text = FormatBytes(outcome.most_held * unit);
  for (size_t i = 0; i < shown.jobs.size(); ++i) {
    text += (i == 0 ? "; " : ", ") + shown.jobs[i].name + " " +
            FormatBytes(outcome.jobs[i].most_held * unit);
  }
  return text;
}

std::string Text(const Shown& shown) {
  const Scenario::Answer& answer = shown.answer;
  const double throughput = answer.outcome.Throughput();
  std::string text = "simulated on " + shown.scenario.machine().name + ", pool " +
                     FormatBytes(shown.scenario.PoolBytes(shown.jobs.size())) + "\n";
  const bool by_turns = ByTurns(answer.setting);
  text += Format("  %-16s %7s %10s %10s %12s %12s %10s %10s%s\n", "job", "batch", "base", "peak",
                 "alone", "together", "waits", "samples/s", by_turns ? "   swaps" : "");
  for (size_t i = 0; i < shown.jobs.size(); ++i) {
    const Workload& job = shown.jobs[i];
    const JobOutcome& outcome = answer.outcome.jobs[i];
    const auto batch = static_cast<double>(shown.options.jobs[i].batch);
    text +=
        Format("  %-16s %7.0f %10s %10s %9.1f ms %9.1f ms %7.1f ms %10.1f%s\n", job.name.c_str(),
               batch, FormatBytes(job.base_bytes).c_str(), FormatBytes(job.peak_bytes).c_str(),
               job.alone_ns / 1e6, IterationNs(shown, i) / 1e6,
               outcome.waited_ns / 1e6 / std::max(outcome.iterations, 1u),
               batch / IterationNs(shown, i) * 1e9,
               by_turns ? Format(" %7u", outcome.evictions).c_str() : "");
  }
  text += WhoseTimes(shown.traces);
  text += Placed(shown.options.scenario, answer);
  text += SharedBy(answer.setting, shown.options.scenario);
  text += Format("  throughput       %.3f iterations' GPU time per time", throughput);
  if (answer.temporal > 0) {
    text += Format("; %.3f times that of taking turns (%.3f)", throughput / answer.temporal,
                   answer.temporal);
  }
  text += Format("; with unlimited memory %.3f\n", answer.unlimited);
  if (answer.paged) {
    const PagingTotals& paging = answer.outcome.paging;
    text += "  paging           " +
            FormatBytes(static_cast<uint64_t>(MovedPerIteration(answer.outcome))) +
            " moved per iteration of a job; in all " + FormatBytes(paging.in_bytes) +
            " to the GPU, " + FormatBytes(paging.out_bytes) + " to the host\n";
  }
  if (!Unmanaged(answer.setting)) {
    text += "  held at most     " + Held(shown) + "\n";
  }
  return text;
}

}  // namespace

std::string Describe(const Setting& setting, uint64_t unit_bytes) {
  if (Unmanaged(setting)) return "spatial: nobody waits for memory";
  if (setting.policy.policy == "temporal") return "temporal: one iteration at a time";
  std::string text = setting.policy.policy + ", " + std::to_string(setting.policy.lanes) +
                     " lanes, claims by " + std::string(scheduler::ClaimsName(setting.claims));
  if (setting.budget != 0) {
    text += ", a budget of " + FormatBytes(setting.budget * unit_bytes);
  }
  if (setting.policy.soft_budget != 0) {
    text += ", a soft budget of " + FormatBytes(setting.policy.soft_budget * unit_bytes);
  }
  const bool never_drains = setting.drain == Drain::kNever;
  // Who takes turns and drains runs ahead as far as it gets.
  if (never_drains || !scheduler::TakesTurns(setting.policy))
    text += Format(", credit 1/%.4g of an iteration", setting.credit_parts);
  if (never_drains) text += ", no draining";
  if (setting.drain == Drain::kWhenOthersAreThere) text += ", draining at each trough";
  if (setting.policy.phase > 0) {
    text += Format(", one begins at %.2f of the one before", setting.policy.phase);
  }
  if (setting.policy.policy == "nodegroup") {
    text += ", groups of 1/" + std::to_string(setting.policy.groups_per_peak) + " of the peak";
  }
  if (ByTurns(setting)) {
    text += Format(", %u %s in the pool, the others by turns of %.4g s", setting.policy.residents,
                   setting.policy.residents == 1 ? "base" : "bases",
                   static_cast<double>(setting.policy.slice_ns) / 1e9);
  }
  return text;
}

std::string SharedBy(const Setting& setting, const ScenarioOptions& asked) {
  return "  shared by        " + Describe(setting, asked.unit_bytes) + "\n  in flags         " +
         FlagsOf(setting, asked.unit_bytes, asked.host_units) + "\n";
}

std::string Placed(const ScenarioOptions& asked, const Scenario::Answer& answer) {
  if (asked.placing == scheduler::Placing::kPacked) return "";
  std::string text = "  placing          " + std::string(scheduler::PlacingName(asked.placing)) +
                     ": jobs ask for more than lives, as on a node";
  if (answer.tight) text += "; there is less than that, and a job may run out of memory";
  return text + "\n";
}

Output RunSimulate(const SimulateOptions& options, const std::string& shipped) {
  const Result<Scenario> scenario = Scenario::Load(options.scenario, shipped);
  if (!scenario.ok()) return Refused(scenario.status());
  std::vector<NamedTrace> traces;
  std::vector<uint64_t> batches;
  for (const TracedJob& traced : options.jobs) {
    Result<NamedTrace> trace = ReadTrace(traced.file);
    if (!trace.ok()) return Refused(trace.status());
    traces.push_back(*std::move(trace));
    batches.push_back(traced.batch);
  }
  const Result<std::vector<Workload>> jobs = scenario->Make(traces, batches);
  if (!jobs.ok()) return Refused(jobs.status());
  const Result<Scenario::Answer> answer = scenario->Share(*jobs, options.stagger_ns);
  if (!answer.ok()) {
    if (answer.status().code() != StatusCode::kResourceExhausted) return Refused(answer.status());
    return DoNotFit(answer.status().message(), options.json);
  }
  const Shown shown{options, *scenario, traces, *jobs, *answer};
  return {0, options.json ? Json(shown) : Text(shown), ""};
}

}  // namespace sluice::cli
