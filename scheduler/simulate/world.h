// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "scheduler/simulate/gpu.h"
#include "scheduler/simulate/pool.h"
#include "scheduler/simulate/simulate.h"

namespace sluice::scheduler::simulate {

/// One run of the model: hosts, GPU and pool between two events.
class World {
 public:
  World(const std::vector<JobRun>& runs, const Machine& machine, const Options& options);

  Result<Outcome> Play();

 private:
  enum class Stage : uint8_t {
    kSleeps,  // until `ready_ns`: it computes, or has not begun
    kGate,    // waits for an answer
    kCredit,  // waits for its GPU, so as not to run too far ahead
    kQueue,   // waits for a place in the launch queue
    kDrains,  // waits for its GPU at its trough
    kGone,
  };
  // what a host does when it wakes up
  enum class Next : uint8_t { kBegin, kArrive, kLaunch, kTrough };
  struct Host {
    Stage stage = Stage::kSleeps;
    Next next = Next::kArrive;
    double ready_ns = 0;
    uint32_t at = 0;  // kernels of this iteration that were launched
    size_t gate = 0;  // the next one of the plan
    double asked_ns = 0;
    double credit_ns = 0;
    double owed_ns = 0;  // for gates it has passed since its last launch
  };

  Status MoveHosts();
  void Sleep(size_t job, double ns, Next next);
  void Step(size_t job);
  Status Answered(const Pool::Answered& answered);
  void Arrive(size_t job);
  double StallNs(size_t job);
  void PassGate(size_t job);
  void Launch(size_t job);
  void GoOn(size_t job);
  void Trough(size_t job);
  void Leave(size_t job);
  void OnEnded(size_t job);
  bool Ahead(size_t job) const;
  double WarmUntil() const;  // when the last job has warmed up; infinity before
  void NoteWarm();
  double SlicesNs() const;
  bool Measured() const;
  bool NobodyLeft() const;
  Outcome Finish();

  const std::vector<JobRun>& runs_;
  const std::vector<const Workload*> workloads_;
  const Machine& machine_;
  const Options& options_;
  double now_ns_ = 0;
  std::unique_ptr<Paging> paging_;  // before the GPU, which asks it
  Gpu gpu_;
  Pool pool_;
  std::vector<Host> hosts_;
  Outcome outcome_;
  bool measured_ = false;
  double warm_ns_ = -1;            // when the last job had warmed up; negative: not yet
  std::vector<double> done_warm_;  // GPU time, alone, that each had done by then
};

}  // namespace sluice::scheduler::simulate
