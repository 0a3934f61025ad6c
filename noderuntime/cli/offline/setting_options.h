// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
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

 private:
  Status CheckThatFlagsFit() const;

  CLI::App* app_;
  std::string policy_ = "auto";
  scheduler::simulate::Setting setting_;
  std::string claims_ = "curve";
  std::string drain_ = "when-others-wait";
  std::string budget_;
  std::string soft_budget_;
};

/// The flags that ask for this setting, to the last bit.
std::string FlagsOf(const scheduler::simulate::Setting& setting, uint64_t unit_bytes);

}  // namespace sluice::cli
