// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/status.h"
#include "scheduler/simulate/simulate.h"

namespace CLI {
class App;
}

namespace sluice::cli {

/// The policy and everything that `auto` finds when it is not named: the words of the command line
/// on their way to a Setting.
class SettingFlags {
 public:
  explicit SettingFlags(CLI::App* app);
  SettingFlags(const SettingFlags&) = delete;  // the command line writes into it
  SettingFlags& operator=(const SettingFlags&) = delete;

  /// "auto", "spatial", or a name of scheduler/policy.
  const std::string& policy() const { return policy_; }
  /// After the command line was read; budgets in units of so many bytes. Its claims are those that
  /// `auto` may go to.
  Result<scheduler::simulate::Setting> Setting(uint64_t unit_bytes) const;
  /// `auto` may keep bases in host memory by turns.
  bool finds_residents() const { return residents_ == kAutoResidents; }
  /// For bases that are there by turns; nothing where nobody said how much.
  Result<std::optional<scheduler::Units>> HostUnits(uint64_t unit_bytes) const;

 private:
  static constexpr const char* kAllResidents = "all";
  static constexpr const char* kAutoResidents = "auto";

  Status CheckThatFlagsFit() const;
  Status CheckThatResidentsFit() const;
  bool NamesResidents() const { return residents_ != kAllResidents && !finds_residents(); }

  CLI::App* app_;
  std::string policy_ = "auto";
  scheduler::simulate::Setting setting_;
  std::string claims_ = "curve";
  std::string drain_ = "when-others-wait";
  std::string budget_;
  std::string soft_budget_;
  std::string residents_ = kAllResidents;
  std::string slice_;
  std::string host_memory_;
};

/// The flags that ask for this setting, to the last bit. `host_units`: of host memory, where it was
/// said how much; a setting that sends no base there says nothing of it.
std::string FlagsOf(const scheduler::simulate::Setting& setting, uint64_t unit_bytes,
                    std::optional<scheduler::Units> host_units = std::nullopt);

}  // namespace sluice::cli
