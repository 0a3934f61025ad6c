// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <functional>
#include <string>

#include "common/status.h"
#include "noderuntime/cli/demo_report.h"
#include "noderuntime/cli/job_process.h"
#include "noderuntime/cli/layout.h"
#include "noderuntime/cli/simulated_gpu.h"
#include "noderuntime/cli/work_dir.h"

namespace sluice::cli {

/// Where the stages tell how far they are.
class DemoProgress {
 public:
  virtual ~DemoProgress() = default;
  virtual void Stage(const std::string& title) = 0;
  /// `done` of `total` iterations of all jobs of the current run.
  virtual void Advance(const std::string& what, size_t done, size_t total) = 0;
  virtual void Note(const std::string& text) = 0;
};

/// Runs the demo: every stage starts real processes, and what they said ends up in a DemoResult.
class Demo {
 public:
  Demo(DemoOptions options, Layout layout, const WorkDir& work, const Interrupts& interrupts,
       DemoProgress& progress);

  /// An error when a stage could not be run at all; a run that broke a promise is a result.
  Result<DemoResult> Run();

 private:
  /// A run of several jobs: what they said, and how far the clock went.
  struct Outcome {
    std::vector<JobProcess> jobs;
    double seconds = 0;
    uint64_t oracle_violations = 0;
  };
  struct SharedPlan {
    std::string name;  // of its folder
    std::string policy;
    bool credit = true;
    uint32_t iterations = 0;
  };

  Status RunSolo(DemoResult& result);
  Status RunCrowded(DemoResult& result);
  Status RunShared(const SharedPlan& plan, DemoResult& result, SharedResult& shared);
  Status ReadEvents(const std::string& file, bool keep_history, DemoResult& result,
                    SharedResult& shared);

  std::vector<std::string> Trainer(const DemoJob& job, uint32_t iterations) const;
  Result<std::optional<SimulatedGpu>> PowerUp(const std::string& name, uint64_t memory_bytes) const;
  Result<Outcome> RunTogether(const std::string& name,
                              const std::vector<std::vector<std::string>>& commands,
                              const std::optional<SimulatedGpu>& gpu,
                              const Environment& environment, uint32_t iterations,
                              bool stop_at_failure);
  void Keep(const std::string& name, const JobProcess& job) const;

  DemoOptions options_;
  Layout layout_;
  const WorkDir& work_;
  const Interrupts& interrupts_;
  DemoProgress& progress_;
  std::vector<DemoJob> plan_;
};

}  // namespace sluice::cli
