// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::cli {

/// Bytes held per job over time, as steps: at `t_ns[i]` job `job[i]` begins to hold `bytes[i]`.
struct HeldStep {
  uint64_t t_ns = 0;
  uint32_t job = 0;  // index into labels
  uint64_t bytes = 0;
};

struct MemoryHistory {
  std::vector<std::string> labels;
  std::vector<HeldStep> steps;  // in time order
  /// Moments worth a mark below the picture (a job passes its gate 0); `bytes` is not used.
  std::vector<HeldStep> marks;
  uint64_t pool_bytes = 0;
};

struct ChartWindow {
  uint64_t from_ns = 0;
  uint64_t to_ns = 0;
};

/// A window of `marks` marks of job 0, all of it when it has fewer: the one in which every job has
/// most marks (a job may have ended, or wait for its profile), nearest to the middle.
ChartWindow MiddleWindow(const MemoryHistory& history, size_t marks);

struct ChartStyle {
  size_t columns = 100;  // of the whole picture
  size_t rows = 16;
  bool colour = false;  // ANSI colours, for a terminal
  bool marks = true;    // the rows of marks
};

/// One line per row, bottom-up stack of the jobs in a different fill each, under a line at the
/// pool's size; then the marks of every job, then a legend. Columns show the mean over their time,
/// so that the stack never exceeds the pool unless the jobs did.
std::string RenderChart(const MemoryHistory& history, ChartWindow window, const ChartStyle& style);

}  // namespace sluice::cli
