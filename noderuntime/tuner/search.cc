// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/tuner/search.h"

namespace sluice::tuner {

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
  tuning.budgets = 0;
  tuning.drains = false;
  tuning.credits.clear();
  tuning.stopped = stopped;
  return simulate::Tune(runs, machine, task.options, tuning);
}

}  // namespace sluice::tuner
