// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <string>
#include <vector>

#include "common/machine.h"
#include "common/status.h"
#include "tools/replay/device_peaks.h"
#include "tools/replay/plan.h"
#include "tools/replay/replayer.h"

namespace sluice::replay {

struct Options {
  std::string trace;  // a file
  uint64_t batch = 0;
  std::string machine;  // a file, or the name of one that came with the program; empty: none
  // 0: as the machine file says, without one the driver.
  double flops_per_s = 0;
  double bytes_per_s = 0;
  double floor_us = -1;  // below 0: as the machine file says; 0 without one
  double time_scale = 1;
  double size_scale = 1;
  double gap_ms = 0;
  int device = 0;
  RunOptions run;
  bool json = false;
  bool help = false;
};

/// Reads the arguments after the program's name. An error is one line that names the option and
/// what it allows.
Result<Options> ParseOptions(const std::vector<std::string>& arguments);

/// Whether the options leave a peak open that only the driver can tell.
bool AsksDriver(const Options& options);

/// What the options leave open is the machine's (its peaks, and the shortest kernel); null: there
/// is none, and the peaks are the device's.
Result<Scaling> ScalingOf(const Options& options, const Machine* machine,
                          const DevicePeaks& device = {});

std::string HelpText();

}  // namespace sluice::replay
