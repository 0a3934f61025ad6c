// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/cli/offline/scenario_options.h"

#include <CLI/CLI.hpp>
#include <charconv>

#include "common/bytes.h"
#include "noderuntime/cli/validators.h"
#include "scheduler/policy/policies.h"

namespace sluice::cli {

Result<double> Nanoseconds(const std::string& text, const char* field) {
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [unit, error] = std::from_chars(text.data(), end, number);
  const std::string_view name(unit, static_cast<size_t>(end - unit));
  const double scale = name == "ns"   ? 1
                       : name == "us" ? 1e3
                       : name == "ms" ? 1e6
                       : name == "s"  ? 1e9
                                      : 0;
  if (error == std::errc() && scale > 0 && number >= 0 && number * scale <= 1e12) {
    return number * scale;
  }
  return Status(StatusCode::kInvalidArgument,
                std::string(field) + ": '" + text +
                    "'; allowed: a number and ns, us, ms or s, as 5ms, at most 1000s");
}

ScenarioFlags::ScenarioFlags(CLI::App* app) : app_(app), setting_(app) {
  app->add_option("--gpu", options_.gpu,
                  "Machine file, or the name of one that came with this program (v100-32)");
  app->add_option("--sharing", sharing_,
                  "How jobs share the GPU: mps (kernels side by side) or timeslice (the machine's)")
      ->check(OneOf({"mps", "timeslice"}));
  app->add_option(
         "--sharing-variant", variant_,
         "What a kernel takes of the SMs: occupancy (all, if it is long enough) or roofline "
         "(at most its part of the peak FLOPs) (the machine's)")
      ->check(OneOf({"occupancy", "roofline"}));
  app->add_option(
      "--switch", switch_,
      "GPU time that going from one job to another costs in time slices (the machine's)");
  app->add_option("--pool", pool_, "Memory to share (the GPU's, less a context for each job)");
  app->add_option("--unit", unit_, "Unit of leases (8MiB)");
  app->add_option(
      "--credit", credit_,
      "Most that a host runs ahead of its GPU, beside --credit-parts (5ms; without bound where "
      "jobs take turns)");
  app->add_option("--gap", gap_,
                  "Time of the host between two iterations, as for loading data (0ms)");
  app->add_option(
         "--gates", options_.max_gates,
         "Most gates in an iteration of a job: where it asks for memory (48, as on a node)")
      ->check(Integer(1, 1000));
  app->add_option(
         "--placing", placing_,
         "What jobs ask for: packed (what lives at most), runs (as on a node whose units are "
         "smaller than handles) or pieces (as on a node by default) (packed)")
      ->check(OneOf(scheduler::PlacingNames()));
  app->add_option("--iterations", options_.iterations,
                  "Iterations of each job that are measured (6)")
      ->check(Integer(1, 1000));
}

Result<ScenarioOptions> ScenarioFlags::Options() const {
  ScenarioOptions options = options_;
  if (app_->count("--sharing") != 0) {
    options.sharing = sharing_ == "mps" ? Sharing::kMps : Sharing::kTimeSlice;
  }
  if (app_->count("--sharing-variant") != 0) {
    options.sharing_variant =
        variant_ == "roofline" ? SharingVariant::kRoofline : SharingVariant::kOccupancy;
  }
  if (app_->count("--switch") != 0) {
    const Result<double> ns = Nanoseconds(switch_, "--switch");
    if (!ns.ok()) return ns.status();
    options.switch_ns = static_cast<uint64_t>(*ns);
  }
  if (app_->count("--pool") != 0) {
    const Result<uint64_t> bytes = ParseBytes(pool_, "--pool");
    if (!bytes.ok()) return bytes.status();
    options.pool_bytes = *bytes;
  }
  if (app_->count("--unit") != 0) {
    const Result<uint64_t> bytes = ParseBytes(unit_, "--unit");
    if (!bytes.ok()) return bytes.status();
    if (*bytes == 0) return Status(StatusCode::kInvalidArgument, "--unit: 0; allowed: above 0");
    options.unit_bytes = *bytes;
  }
  options.policy = setting_.policy();
  Result<scheduler::simulate::Setting> setting = setting_.Setting(options.unit_bytes);
  if (!setting.ok()) return setting.status();
  options.setting = *std::move(setting);
  options.finds_residents = setting_.finds_residents();
  const Result<std::optional<scheduler::Units>> host = setting_.HostUnits(options.unit_bytes);
  if (!host.ok()) return host.status();
  options.host_units = *host;
  if (app_->count("--credit") != 0) {
    const Result<double> ns = Nanoseconds(credit_, "--credit");
    if (!ns.ok()) return ns.status();
    options.most_credit_ns = *ns;
  }
  if (app_->count("--gap") != 0) {
    const Result<double> ns = Nanoseconds(gap_, "--gap");
    if (!ns.ok()) return ns.status();
    options.gap_ns = *ns;
  }
  if (app_->count("--placing") != 0) options.placing = *scheduler::FindPlacing(placing_);
  if (options.placing != scheduler::Placing::kPacked &&
      options.policy == scheduler::kSpatialPolicy) {
    return Status(StatusCode::kInvalidArgument,
                  "--placing: '" + placing_ +
                      "' means nothing with --policy spatial, where nobody asks for memory; "
                      "allowed: packed");
  }
  return options;
}

}  // namespace sluice::cli
