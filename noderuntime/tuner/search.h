// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "common/machine.h"
#include "common/status.h"
#include "scheduler/simulate/tune.h"

namespace sluice::tuner {

/// What a search goes by: jobs of the model, and the pool that they share. A value.
struct SearchTask {
  std::vector<scheduler::simulate::Workload> jobs;
  scheduler::simulate::Options options;
  scheduler::Claims claims = scheduler::Claims::kContract;  // falling claims need insurance
  bool soft_budgets = true;                                 // are tried
  bool credits = true;                                      // others than the usual one are tried
};

using SearchResult = Result<scheduler::simulate::Tuned>;

/// Runs the model of the task, with what can be changed on a running node. `stopped`: TuneOptions.
SearchResult RunSearch(const SearchTask& task, const std::function<bool()>& stopped);

/// One search at a time, somewhere else: the model takes seconds, a daemon has microseconds.
class Searcher {
 public:
  virtual ~Searcher() = default;
  /// What is under way is dropped, and its answer never comes.
  virtual void Begin(SearchTask task) = 0;
  virtual void Drop() = 0;
  /// The answer to the last Begin, once.
  virtual std::optional<SearchResult> Take() = 0;
};

}  // namespace sluice::tuner
