// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>

#include "common/cuda/abi.h"
#include "simgpu/streams/executor_link.h"
#include "simgpu/streams/virtual_host.h"

namespace sluice::simgpu {

/// The client's end of the command ring. What takes a Lock needs the context's driver lock; the
/// rest is lock-free, so that queries and waits never stand behind a launch that is blocked.
class CommandQueue {
 public:
  using Lock = std::unique_lock<std::mutex>;

  /// `virtual_time` is null where the clock follows real time.
  CommandQueue(ExecutorLink* link, const GpuState* gpu, VirtualHost* virtual_time);

  /// Issues one operation and returns its id, 0 if the context has failed. Costs CPU time as the
  /// driver's own work does, and blocks *under the driver lock* while the launch queue is full.
  uint64_t Submit(Command command, Lock& held);

  bool Done(uint32_t stream, uint64_t id) const;
  /// Waits until the operation is over; false when the context has failed.
  bool Wait(uint32_t stream, uint64_t id);
  CUresult error() const;

  /// A piece of the staging area. Lets the lock go while it waits for room.
  std::optional<uint64_t> Stage(uint64_t bytes, Lock& held);
  /// The piece is free once the operation is over.
  void ReleaseStaged(uint64_t offset, uint32_t stream, uint64_t id);
  unsigned char* Staged(uint64_t offset) const { return channel_->staging + offset; }

  Channel* channel() const { return channel_; }
  void Ring();
  /// A host function has returned.
  void FunctionReturned();

 private:
  void WaitForProgress(uint32_t seen);
  void WaitForFinished(uint64_t count);
  void CheckExecutor();
  void ReapStaged();

  struct Busy {
    uint64_t offset;
    uint32_t stream;
    uint64_t id;
  };

  ExecutorLink* link_;
  Channel* channel_;
  const Machine* machine_;
  VirtualHost* virtual_time_;
  uint32_t executor_ = kNobody;  // in virtual time: as the GPU's state numbers it
  uint64_t launch_spin_ns_;
  std::map<uint64_t, uint64_t> free_;   // staging: offset -> bytes
  std::map<uint64_t, uint64_t> taken_;  // offset -> bytes
  std::deque<Busy> busy_;
};

}  // namespace sluice::simgpu
