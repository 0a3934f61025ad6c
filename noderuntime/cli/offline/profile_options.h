// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <string>

#include "common/status.h"
#include "scheduler/profile/gates.h"

namespace CLI {
class App;
}

namespace sluice::cli {

/// sluice profile FILE
struct ProfileOptions {
  std::string file;
  uint64_t batch = 0;           // 0: the first of the trace's fitted_batches, 1 without them
  std::string gpu = "v100-32";  // a machine file, or the name of one that came with the program
  uint64_t unit_bytes = uint64_t{8} << 20;
  uint32_t max_gates = scheduler::GateOptions().max_gates;
  std::string svg;  // empty: nowhere
  bool json = false;
};

/// The words of the command line on their way to ProfileOptions.
class ProfileFlags {
 public:
  explicit ProfileFlags(CLI::App& app);
  ProfileFlags(const ProfileFlags&) = delete;  // the command line writes into it
  ProfileFlags& operator=(const ProfileFlags&) = delete;

  bool chosen() const;
  /// After the command line was read.
  Result<ProfileOptions> Options() const;

 private:
  CLI::App* app_;
  ProfileOptions options_;
  std::string unit_;
};

}  // namespace sluice::cli
