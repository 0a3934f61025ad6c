// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/status.h"
#include "scheduler/place/offline/solve.h"

namespace CLI {
class App;
}

namespace sluice::cli {

/// sluice place FILE
struct PlaceOptions {
  std::string file;
  std::string output;  // empty: nowhere
  std::optional<uint64_t> capacity_bytes;
  scheduler::PlaceObjective objective = scheduler::PlaceObjective::kFootprint;
  uint64_t unit_bytes = uint64_t{8} << 20;
  uint64_t batch = 0;  // 0: not given
  uint64_t granule_bytes = 1;
  scheduler::PlaceEffort effort;
  bool json = false;
};

/// The words of the command line on their way to PlaceOptions.
class PlaceFlags {
 public:
  explicit PlaceFlags(CLI::App& app);
  PlaceFlags(const PlaceFlags&) = delete;  // the command line writes into it
  PlaceFlags& operator=(const PlaceFlags&) = delete;

  bool chosen() const;
  /// After the command line was read.
  Result<PlaceOptions> Options() const;

 private:
  CLI::App* app_;
  PlaceOptions options_;
  std::string capacity_;
  std::string unit_;
  std::string granule_;
  std::string objective_;
  std::string effort_;
};

}  // namespace sluice::cli
