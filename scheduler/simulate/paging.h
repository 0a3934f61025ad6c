// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/machine.h"
#include "scheduler/simulate/touches.h"

namespace sluice::scheduler::simulate {

struct Workload;

/// Iterations of each job before one is measured: jobs that page take long to fall into a phase,
/// and shorter runs differ by when the jobs began.
inline constexpr uint32_t kPagingWarmUp = 20;

/// What unified virtual memory (UVM) costs where the jobs' memory is more than the GPU's. Where the
/// sources leave a choice it is made in favour of paging.
struct PagingOptions {
  /// The least that comes in with a fault: the leaf of the driver's prefetch tree (Ganguly et al.,
  /// ISCA 2019, section 3; uvm_perf_prefetch.c of NVIDIA's open kernel modules).
  uint64_t page_bytes = uint64_t{64} << 10;
  /// What is evicted at once: a root chunk of the driver (uvm_pmm_gpu.c, same place; Allen and Ge,
  /// SC 2021, section 2).
  uint64_t block_bytes = uint64_t{2} << 20;
  /// One direction of the host link; Machine::copy_bytes_per_s, whose source its file names.
  double link_bytes_per_s = 12e9;
  /// A group of faults, from the first of them to the replay, without its copy. Ganguly et al. take
  /// 45 us; Zheng et al. (HPCA 2016) name 20 to 50 us.
  double fault_group_ns = 45'000;
  /// Groups until a whole block has come in. The prefetcher takes the largest part of the block of
  /// which more than 51 % are there or asked for (uvm_perf_prefetch_threshold): a sweep from one
  /// end brings in 1, 1, 2, 4, 8 and 16 of the 32 pages.
  double groups_per_block = 6;
  /// Whether blocks that were not written since they came in are copied out too: a GPU keeps no
  /// note of who wrote, so the driver has to, unless the program told it that they are only read.
  bool copies_clean = false;

  static PagingOptions Of(const Machine& machine);
};

struct PagingTotals {
  uint64_t in_bytes = 0;   // to the GPU
  uint64_t out_bytes = 0;  // to the host
  uint64_t fault_groups = 0;
  double busy_ns = 0;  // in which the driver served faults
  uint64_t moved_bytes() const { return in_bytes + out_bytes; }
};

/// The memory of one GPU under UVM, shared by jobs that know nothing of each other. What a kernel
/// touches is brought in before it starts; what was not touched for the longest time makes room
/// for it, the first blocks of a buffer first. A buffer that a kernel sweeps from its first block
/// to its last is as if each block had its own place in the order (tests compare). Faults of all
/// jobs are served one after the other, evictions first.
///
/// In favour of paging: the order is by use, while the driver's is by arrival; blocks that were not
/// written since they came in are dropped (but see PagingOptions::copies_clean); whoever waits for
/// pages leaves the SMs to others. A block touched for the first time is not copied and costs
/// nothing but what is evicted for it. What is freed takes nothing any more; whether a framework
/// ever gives anything back is said by the workload (WorkloadOptions::touched).
class Paging {
 public:
  /// The jobs outlive it. Nothing was touched yet.
  Paging(const PagingOptions& options, uint64_t memory_bytes,
         const std::vector<const Workload*>& jobs);

  /// The job's kernel wants to start: nanoseconds until all that it touches is there. Takes time in
  /// proportion to the buffers that are touched and evicted, amortised.
  double Touch(size_t job, size_t kernel, double now_ns);
  /// The kernel is done: what the job frees behind it takes nothing any more.
  void Ended(size_t job, size_t kernel);

  const PagingTotals& totals() const { return totals_; }
  uint64_t resident_bytes() const { return (pages_ - free_) * options_.page_bytes; }

 private:
  /// What is there of a buffer is its end: pages [there, pages), those from `dirty` on written.
  struct Buffer {
    uint64_t pages = 0;
    uint64_t there = 0;
    uint64_t dirty = 0;
    bool touched = false;  // since it was allocated: what is not there is on the host
    size_t older = 0;      // in the order of use, while anything is there
    size_t newer = 0;
    uint64_t resident() const { return pages - there; }
  };

  void Bring(size_t id, bool writes);
  uint64_t MakeRoomFor(size_t id);
  void Evict(size_t id, uint64_t pages);
  void CopyOut(uint64_t pages);
  void Free(size_t id);
  void Unlink(size_t id);
  void Append(size_t id);

  const PagingOptions options_;
  std::vector<const Workload*> jobs_;
  std::vector<size_t> first_;  // buffer of each job
  std::vector<Buffer> buffers_;
  size_t ends_ = 0;  // place in `buffers_` of the order's two ends
  uint64_t pages_ = 0;
  uint64_t free_ = 0;
  double spent_ns_ = 0;  // on the kernel at hand
  double free_at_ns_ = 0;
  PagingTotals totals_;
};

}  // namespace sluice::scheduler::simulate
