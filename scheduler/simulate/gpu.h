// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/machine.h"
#include "scheduler/simulate/paging.h"
#include "scheduler/simulate/workload.h"

namespace sluice::scheduler::simulate {

/// The GPU of the model: each job has one stream, which repeats the kernels of its workload. With
/// Sharing::kMps the kernels at the heads of the streams run side by side at the speeds of
/// SharedRates (common/gpu_shares.h); with kTimeSlice one job runs at a time, for a quantum while
/// others want the GPU too, and idle jobs are passed over. Times are nanoseconds.
class Gpu {
 public:
  /// `machine`, what `jobs` points to, and `paging` outlive the GPU. With `paging` a kernel waits
  /// for what it touches, from when it is at the head of its stream and has the GPU's turn.
  Gpu(const Machine& machine, const std::vector<const Workload*>& jobs, Paging* paging = nullptr);

  /// The job's next kernel is launched.
  void Launch(size_t job);
  uint64_t launched(size_t job) const { return streams_[job].launched; }
  uint64_t done(size_t job) const { return streams_[job].done; }
  uint64_t queued(size_t job) const { return launched(job) - done(job); }
  /// GPU time, alone, of what is launched and not done.
  double queued_ns(size_t job) const { return streams_[job].queued_ns; }
  /// GPU time, alone, of what is done, the part of the running kernel included.
  double done_ns(size_t job) const { return streams_[job].done_ns; }
  /// Sum over time of how fast the job ran as a part of its speed alone, over the time it had work.
  double busy_ns(size_t job) const { return streams_[job].busy_ns; }

  /// Until something ends or changes by itself; infinity while idle.
  double UntilNext() const;
  /// At most UntilNext(). Appends the jobs of which a kernel has ended, by index.
  void Advance(double ns, std::vector<size_t>* ended);

 private:
  struct Stream {
    const Workload* workload = nullptr;
    uint64_t launched = 0;
    uint64_t done = 0;
    size_t head = 0;      // place of kernel `done` in the workload
    size_t tail = 0;      // of kernel `launched`
    double left_ns = 0;   // of the head, alone
    double rate = 0;      // of its speed alone
    double pages_ns = 0;  // until all is there that the head touches
    bool asked = false;   // for the head's pages
    double queued_ns = 0;
    double done_ns = 0;
    double busy_ns = 0;
    bool waiting() const { return launched > done; }
    const Kernel& kernel() const { return workload->kernels[head]; }
  };

  void Share();
  void AskForPages(size_t job);
  void TakeTurn();

  const Machine& machine_;
  Paging* paging_;
  double now_ns_ = 0;
  std::vector<Stream> streams_;
  std::vector<GpuDemand> demands_;  // scratch
  RateSharer sharer_;
  size_t turn_ = 0;  // kTimeSlice: who has the GPU
  bool taken_ = false;
  double slice_left_ns_ = 0;
  double switch_left_ns_ = 0;
};

}  // namespace sluice::scheduler::simulate
