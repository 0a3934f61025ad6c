// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/cli/offline/setting_options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "common/bytes.h"
#include "noderuntime/cli/offline/scenario_options.h"
#include "noderuntime/cli/validators.h"
#include "scheduler/policy/policies.h"

namespace sluice::cli {
namespace {

using scheduler::Units;
using scheduler::simulate::Drain;

constexpr std::string_view kNodeGroup = "nodegroup";
/// In the order of Drain.
constexpr std::array<const char*, 3> kDrains = {"when-others-wait", "when-others-are-there",
                                                "never"};

/// Policies under which jobs lend to each other, so that there is something to set.
std::vector<std::string> LendingPolicies() {
  std::vector<std::string> names = scheduler::PolicyNames();
  std::erase(names, "temporal");
  return names;
}

bool Lends(const std::string& policy) {
  const std::vector<std::string> names = LendingPolicies();
  return std::find(names.begin(), names.end(), policy) != names.end();
}

std::string Joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

/// 0: it is no number of bases.
uint32_t NumberOfBases(const std::string& text) {
  constexpr uint32_t kMost = 64;
  uint32_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && rest == end && number <= kMost ? number : 0;
}

/// Whole units of `text`. `most`: a budget is a part of the pool (Scenario::CheckPool has the
/// pool), host memory ends nowhere.
Result<Units> UnitsOf(const std::string& text, const char* flag, uint64_t unit_bytes,
                      const char* most) {
  const Result<uint64_t> bytes = ParseBytes(text, flag);
  if (!bytes.ok()) return bytes.status();
  if (*bytes < unit_bytes) {
    return Status(StatusCode::kInvalidArgument, std::string(flag) + ": " + text +
                                                    "; allowed: from a unit, " +
                                                    FormatBytes(unit_bytes) + ", " + most);
  }
  return static_cast<Units>(std::min<uint64_t>(*bytes / unit_bytes, UINT32_MAX));
}

Status Refuse(const std::string& flag, const std::string& with, const std::string& allowed) {
  return {StatusCode::kInvalidArgument,
          flag + ": means nothing with " + with + "; allowed: with " + allowed};
}

/// Read back it is the same number.
std::string Exactly(double number) {
  char text[64];
  return {text, std::to_chars(text, text + sizeof text, number).ptr};
}

}  // namespace

SettingFlags::SettingFlags(CLI::App* app) : app_(app) {
  app->add_option("--policy", policy_, "Who waits for whom (auto)")
      ->check(OneOf(scheduler::NodePolicyNames()));
  app->add_option(
         "--claims", claims_,
         "What others may count on: contract, steps or curve; with auto the furthest that is "
         "tried (curve)")
      ->check(OneOf(scheduler::ClaimsNames()));
  app->add_option("--steps", setting_.steps, "In how many steps claims by steps fall (4)")
      ->check(Integer(1, 1000));
  app->add_option("--lanes", setting_.policy.lanes, "Jobs in their iteration at the same time (2)")
      ->check(Integer(1, 64));
  app->add_option("--phase", setting_.policy.phase,
                  "How much of its iteration a job has to have done before the next one begins (0)")
      ->check(Between(0.0, 0.99, "a number from 0 to 0.99"));
  app->add_option("--budget", budget_,
                  "As if no more than this part of the pool were there (the pool)");
  app->add_option("--soft-budget", soft_budget_,
                  "Gates open as if no more than this part of the pool were lent (the pool)");
  app->add_option("--drain", drain_,
                  "Whether a host waits for its GPU at the trough: when-others-wait for memory, "
                  "when-others-are-there (as on a node), or never (when-others-wait)")
      ->check(OneOf({kDrains.begin(), kDrains.end()}));
  app->add_option("--credit-parts", setting_.credit_parts,
                  "A host runs ahead of its GPU by at most one of so many parts of its iteration "
                  "(8)")
      ->check(Between(1.0, 1e6, "a number from 1 to 1000000"));
  app->add_option("--nodegroup-groups", setting_.policy.groups_per_peak,
                  "A group of nodegroup takes or gives about this part of the peak (10)")
      ->check(Integer(1, 1000));
  app->add_option("--residents", residents_,
                  "Bases in the pool at once, those of the other jobs in host memory by turns: a "
                  "number, all, or auto (with --policy auto) to find one (all)")
      ->check(CLI::Validator(
          [](const std::string& text) -> std::string {
            if (text == kAllResidents || text == kAutoResidents || NumberOfBases(text) != 0)
              return "";
            return "'" + text + "'; allowed: all, auto, or 1 to 64";
          },
          "all, auto, or 1 to 64"));
  app->add_option("--slice", slice_, "How long a base is in host memory, with --residents N (1s)");
  app->add_option("--host-memory", host_memory_,
                  "Host memory for bases, with --residents N or auto (as much as the pool)");
}

Status SettingFlags::CheckThatFlagsFit() const {
  const std::vector<std::string> lending = LendingPolicies();
  const std::string allowed = "--policy " + Joined(lending);
  const bool finds = policy_ == scheduler::kAutoPolicy;
  const bool lends = Lends(policy_);
  if (app_->count("--claims") != 0 && !lends && !finds) {
    return Refuse("--claims", "--policy " + policy_, allowed + ", auto");
  }
  for (const char* flag :
       {"--lanes", "--phase", "--budget", "--soft-budget", "--drain", "--credit-parts"}) {
    if (app_->count(flag) != 0 && !lends) return Refuse(flag, "--policy " + policy_, allowed);
  }
  if (app_->count("--steps") != 0) {
    if (!lends) return Refuse("--steps", "--policy " + policy_, allowed);
    if (claims_ != "steps") return Refuse("--steps", "--claims " + claims_, "--claims steps");
  }
  if (app_->count("--nodegroup-groups") != 0 && policy_ != kNodeGroup) {
    return Refuse("--nodegroup-groups", "--policy " + policy_, "--policy nodegroup");
  }
  return CheckThatResidentsFit();
}

Status SettingFlags::CheckThatResidentsFit() const {
  if (finds_residents() && policy_ != scheduler::kAutoPolicy)
    return Refuse("--residents auto", "--policy " + policy_, "--policy auto");
  if (NamesResidents() && !Lends(policy_)) {
    return Refuse("--residents " + residents_, "--policy " + policy_,
                  "--policy " + Joined(LendingPolicies()));
  }
  if (app_->count("--slice") != 0 && !NamesResidents())
    return Refuse("--slice", "--residents " + residents_, "--residents 1 to 64");
  if (app_->count("--host-memory") != 0 && residents_ == kAllResidents)
    return Refuse("--host-memory", "--residents all", "--residents auto, or 1 to 64");
  return {};
}

Result<std::optional<Units>> SettingFlags::HostUnits(uint64_t unit_bytes) const {
  if (app_->count("--host-memory") == 0) return std::optional<Units>();
  const Result<Units> units = UnitsOf(host_memory_, "--host-memory", unit_bytes, "upwards");
  if (!units.ok()) return units.status();
  return std::optional<Units>(*units);
}

Result<scheduler::simulate::Setting> SettingFlags::Setting(uint64_t unit_bytes) const {
  if (Status status = CheckThatFlagsFit(); !status.ok()) return status;
  scheduler::simulate::Setting setting = setting_;
  setting.policy.policy = policy_;
  // Under the others nobody claims anything, and `auto` finds them as they are by default.
  if (Lends(policy_) || policy_ == scheduler::kAutoPolicy) {
    setting.claims = scheduler::FindClaims(claims_).value_or(scheduler::Claims::kCurve);
  }
  const auto drain = std::find(kDrains.begin(), kDrains.end(), drain_);
  if (drain != kDrains.end()) setting.drain = static_cast<Drain>(drain - kDrains.begin());
  for (const auto& [flag, text, units] :
       {std::tuple{"--budget", &budget_, &setting.budget},
        std::tuple{"--soft-budget", &soft_budget_, &setting.policy.soft_budget}}) {
    if (app_->count(flag) == 0) continue;
    const Result<Units> budget = UnitsOf(*text, flag, unit_bytes, "to the pool");
    if (!budget.ok()) return budget.status();
    *units = *budget;
  }
  if (NamesResidents()) setting.policy.residents = NumberOfBases(residents_);
  if (app_->count("--slice") != 0) {
    const Result<double> ns = Nanoseconds(slice_, "--slice");
    if (!ns.ok()) return ns.status();
    setting.policy.slice_ns = static_cast<uint64_t>(std::llround(*ns));
    if (setting.policy.slice_ns == 0)
      return Status(StatusCode::kInvalidArgument, "--slice: " + slice_ + "; allowed: above 0");
  }
  return setting;
}

std::string FlagsOf(const scheduler::simulate::Setting& setting, uint64_t unit_bytes,
                    std::optional<Units> host_units) {
  const scheduler::Config& config = setting.policy;
  std::string flags = "--policy " + config.policy;
  if (!Lends(config.policy)) return flags;
  flags += " --lanes " + std::to_string(config.lanes) + " --claims " +
           std::string(scheduler::ClaimsName(setting.claims));
  if (setting.claims == scheduler::Claims::kSteps) {
    flags += " --steps " + std::to_string(setting.steps);
  }
  if (setting.budget != 0) flags += " --budget " + std::to_string(setting.budget * unit_bytes);
  if (config.soft_budget != 0) {
    flags += " --soft-budget " + std::to_string(config.soft_budget * unit_bytes);
  }
  flags += " --credit-parts " + Exactly(setting.credit_parts);
  if (setting.drain != Drain{}) {
    flags += std::string(" --drain ") + kDrains[static_cast<size_t>(setting.drain)];
  }
  if (config.phase > 0) flags += " --phase " + Exactly(config.phase);
  if (config.policy == kNodeGroup) {
    flags += " --nodegroup-groups " + std::to_string(config.groups_per_peak);
  }
  if (config.residents == 0) return flags;
  flags += " --residents " + std::to_string(config.residents) + " --slice " +
           std::to_string(config.slice_ns) + "ns";
  if (host_units) flags += " --host-memory " + std::to_string(*host_units * unit_bytes);
  return flags;
}

}  // namespace sluice::cli
