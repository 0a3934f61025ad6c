// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "common/status.h"
#include "noderuntime/gpu/device.h"
#include "noderuntime/hosttier/pinned_pieces.h"
#include "scheduler/ledger/types.h"

namespace sluice::hosttier {

using scheduler::Extents;
using scheduler::JobId;

/// Copies a quiet job's part of the pool to host memory, and back to the same offsets. It decides
/// nothing: who leaves, and when, is for its caller.
///
/// Who holds these bytes? The job. While they leave and while they return its units are leased to
/// it, and nobody else may touch them. Only while it is away may they be lent to others, and before
/// Restore they are leased to it again.
///
/// What proves that the GPU is done with them? Before Evict, that the job is quiet and that all its
/// marks are reached: its caller's proof, because no stream here is ordered behind one of another
/// process. Before Restore, the fences of those who held the units in between, likewise. Afterwards
/// an event behind the copies, which Poll asks for; or, where the driver fails, that it has drained
/// or given up the stream.
///
/// Who may be waiting for whom? The job waits for its copies, at its gate. The copies wait for
/// nobody but the copies of the same direction before them. Forget and the destructor wait for
/// copies under way, which need no job to go on; nothing else here waits, except that locking new
/// host memory takes time (Evict) and that after an error of the driver the stream is drained.
///
/// The copies die with the daemon: whoever is away then has lost its memory. Neither does a copy
/// survive an error that ends the daemon's context; Restore reports it each time it is tried.
///
/// Owns the host memory; `device` outlives it. Amounts in bytes, extents in lease units. For one
/// thread.
class HostTier {
 public:
  /// Large enough for full speed, small enough that the host has it in one run.
  static constexpr uint64_t kMaxPieceBytes = uint64_t{64} << 20;
  /// So long after the last move the machine gets what is kept for the next one.
  static constexpr uint64_t kKeptNs = 60'000'000'000;

  /// `capacity_bytes`: most host memory that it takes, whole pieces of it; 0: there is no tier.
  HostTier(gpu::Device* device, uint64_t unit_bytes, uint64_t capacity_bytes);
  ~HostTier();
  HostTier(const HostTier&) = delete;
  HostTier& operator=(const HostTier&) = delete;

  uint64_t capacity_bytes() const { return pieces_.capacity_bytes(); }
  /// Held for jobs, in whole pieces. What is kept for the next one does not count.
  uint64_t used_bytes() const { return pieces_.used_bytes(); }
  /// Whether a job of so many bytes could leave. The machine may still refuse the memory.
  bool HasRoom(uint64_t bytes) const { return pieces_.HasRoom(bytes); }

  /// Begins to copy out. Host memory is allocated here. An error leaves nothing behind, and the
  /// bytes on the GPU are good: kInvalidArgument: extents that are none, or not sorted and apart;
  /// kFailedPrecondition: something of the job is here already; kResourceExhausted: no room;
  /// others: the driver's.
  Status Evict(JobId job, const Extents& extents);

  /// Begins to copy back, to the extents that it left. kNotFound: nothing of the job is here;
  /// kFailedPrecondition: a copy of it is under way; others: the driver's, and the host's copy
  /// stays: it may be tried again.
  Status Restore(JobId job);

  /// The job is gone. Waits for a copy of it that is under way, which would read or write units
  /// that are somebody else's next. Poll does not tell of it. Nothing happens if nothing is here.
  void Forget(JobId job);

  /// kAway: the host has its bytes. kLeaving, kReturning: a copy is under way.
  enum class Place : uint8_t { kNone, kLeaving, kAway, kReturning };
  Place Where(JobId job) const;

  /// What is copied of the job, or was: also of one that has come back, until the next Poll. Empty:
  /// nothing of it is here.
  Extents Copied(JobId job) const;

  /// A copy that has ended. `was` kLeaving: the job is away now; after a failure it is not, and its
  /// bytes on the GPU are good. `was` kReturning: it is back and forgotten here; after a failure it
  /// is away still, its units hold anything, and Restore may be tried again.
  struct Finished {
    JobId job = 0;
    Place was = Place::kNone;
    Status status;
  };
  /// Each copy that has ended since the last call, by job.
  std::vector<Finished> Poll();
  /// A copy is under way: poll soon.
  bool busy() const { return under_way_ > 0; }

  /// To be called once in a while. Frees one piece that no job has, kKeptNs after the last move:
  /// unlocking memory takes time, too, and the caller serves others in between. A move is a copy
  /// that began or ended, or a job that was forgotten. What jobs in host memory have stays.
  void FreeWhatIsKept(uint64_t now_ns);
  /// When that has something to do; nullopt: nothing.
  std::optional<uint64_t> frees_at_ns() const;

 private:
  struct Copy {
    Place place = Place::kNone;
    Extents extents;
    std::vector<std::byte*> pieces;
    gpu::CopyTicket ticket = 0;  // while it leaves or returns
  };
  using Copies = std::map<JobId, Copy>;

  std::vector<gpu::CopySpan> Spans(const Copy& copy) const;
  Status Start(Place place, Copy* copy);
  Copies::iterator Drop(Copies::iterator copy);

  gpu::Device* device_;
  uint64_t unit_bytes_;
  PinnedPieces pieces_;
  Copies copies_;
  std::map<JobId, Extents> back_;  // of those who came back at the last Poll
  size_t under_way_ = 0;
  bool moved_ = false;  // since last_move_ns_ was noted
  uint64_t last_move_ns_ = 0;
};

}  // namespace sluice::hosttier
