// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "noderuntime/cli/look/live_view.h"

namespace sluice::cli {

/// How `sluice top` is looked at.
struct TopState {
  size_t columns = 100;
  size_t rows = 30;
  size_t selected = 0;  // place in the list of jobs
  enum class Order { kNumber, kHeld, kWaits } order = Order::kNumber;
  bool paused = false;
  std::string gpu;   // "GPU 0"; empty: there is one
  std::string gone;  // why the daemon does not answer; empty: it does
};

struct TopScreen {
  static constexpr size_t kNone = ~size_t{0};
  std::vector<std::string> lines;  // UTF-8, no wider than the screen and no more than its rows
  size_t header = kNone;           // line with the names of columns
  size_t selected = kNone;         // line of the selected job
};

/// The screen: pool and policy, what was held in the last seconds, jobs, and why the selected one
/// waits. With few rows the picture goes first, then jobs that are far from the selected one. Pure.
TopScreen RenderTop(const LiveView& view, const TopState& state);

/// Jobs in the order of the screen.
std::vector<LiveJob> JobsInOrder(const LiveView& view, TopState::Order order);

}  // namespace sluice::cli
