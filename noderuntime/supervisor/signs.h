// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <string>

#include "common/status.h"

namespace sluice::supervisor {

/// What a supervisor shows of itself in its folder, for whoever only looks (probes of a cluster).
class Signs {
 public:
  /// Makes the folder, 0700 as the daemons', and takes away what an earlier one left.
  static Result<Signs> Begin(const std::string& runtime_dir);

  /// All daemons serve, or not all.
  void SetReady(bool ready);
  /// It turns. To be said more often than every kStillS seconds.
  void Beat() const;

  static constexpr int kStillS = 30;
  /// For the others: not an error when so.
  static Status CheckReady(const std::string& runtime_dir);
  static Status CheckAlive(const std::string& runtime_dir);

 private:
  explicit Signs(std::string folder) : folder_(std::move(folder)) {}

  std::string folder_;
};

}  // namespace sluice::supervisor
