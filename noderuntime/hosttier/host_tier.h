// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "common/status.h"
#include "noderuntime/gpu/device.h"
#include "scheduler/ledger/types.h"

/// Host memory for what a job has on the GPU (I5: the insurance against jobs that leave their
/// claims).
namespace sluice::hosttier {

using scheduler::Extents;
using scheduler::JobId;

/// Copies of extents of the pool, at most one set for each job. Copies run on the GPU's own time;
/// Poll tells which have ended. One thread.
///
/// Who holds the bytes: until a copy out has ended, the job does, on the GPU; then this does, and
/// the extents may be lent; they have to be the job's again before Restore. What proves that the
/// GPU is done with them: the caller, who had the job stand still, for the copy out; an event
/// behind it, for whoever is lent them next. Who waits: nobody but Forget, for a copy that would
/// otherwise read from or write to what is somebody else's.
class HostTier {
 public:
  /// `device` outlives it. A capacity of 0: there is no host memory.
  HostTier(gpu::Device* device, uint64_t unit_bytes, uint64_t capacity_bytes);
  ~HostTier();
  HostTier(const HostTier&) = delete;
  HostTier& operator=(const HostTier&) = delete;

  uint64_t capacity_bytes() const { return capacity_bytes_; }
  uint64_t used_bytes() const { return used_bytes_; }
  bool HasRoom(uint64_t bytes) const { return bytes <= capacity_bytes_ - used_bytes_; }

  /// Begins to copy out. kResourceExhausted: no room; kFailedPrecondition: something of the job is
  /// here. After an error nothing is left of it.
  Status Evict(JobId job, const Extents& extents);
  /// Begins to copy back, to the same extents. kFailedPrecondition: its copy out has not ended.
  Status Restore(JobId job);
  /// The job has ended: waits for a copy of it that is under way, and gives its memory up.
  void Forget(JobId job);

  enum class Place : uint8_t { kNone, kLeaving, kAway, kReturning };
  Place Where(JobId job) const;

  struct Finished {
    JobId job;
    Place was;      // kLeaving or kReturning
    Status status;  // failed: it is still on the GPU (kLeaving), or still here (kReturning)
  };
  /// The copies that have ended since the last call. What came back whole is forgotten here.
  std::vector<Finished> Poll();
  /// A copy is under way: poll again soon.
  bool busy() const { return under_way_ > 0; }

 private:
  struct Copy {
    Place place = Place::kNone;
    uint64_t bytes = 0;
    std::vector<gpu::Piece> pieces;
    gpu::CopyTicket ticket = 0;
  };

  Status Allocate(const Extents& extents, Copy* copy);
  void Free(Copy* copy);

  gpu::Device* device_;
  uint64_t unit_bytes_;
  uint64_t capacity_bytes_;
  uint64_t used_bytes_ = 0;
  size_t under_way_ = 0;
  std::map<JobId, Copy> copies_;
};

}  // namespace sluice::hosttier
