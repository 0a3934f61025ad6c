// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/tuner/search.h"

namespace sluice::tuner {

namespace {

constexpr uint32_t kBudgets = 8;  // tried for each setting that is refined

}  // namespace

SearchResult RunSearch(const SearchTask& task, const std::function<bool()>& stopped) {
  namespace simulate = scheduler::simulate;
  // Programs without MPS use a GPU in turns; how well their kernels fit beside each other is
  // measured, not predicted. A launch costs its host what it cost in the iteration that was timed.
  Machine machine;
  machine.sharing = Sharing::kTimeSlice;
  machine.launch_ns = 0;
  std::vector<simulate::JobRun> runs;
  for (const simulate::Workload& job : task.jobs) {
    simulate::JobRun run;
    run.workload = &job;
    // Not in step: jobs that begin together may stay so, and live ones do not begin together.
    run.start_ns = job.alone_ns * 0.3 * static_cast<double>(runs.size());
    runs.push_back(run);
  }
  simulate::TuneOptions tuning;
  tuning.claims = task.claims;
  tuning.soft = true;
  tuning.budgets = task.soft_budgets ? kBudgets : 0;
  // Who does not drain gives nothing back at its trough that others could be promised (ADR 26).
  tuning.drains = false;
  if (!task.credits) tuning.credits.clear();
  tuning.phases.clear();
  tuning.groups.clear();
  tuning.one_of_each = true;
  tuning.stopped = stopped;
  return simulate::Tune(runs, machine, task.options, tuning);
}

}  // namespace sluice::tuner
