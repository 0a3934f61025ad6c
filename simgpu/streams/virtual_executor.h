// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <memory>

#include "simgpu/sharing/gpu_state.h"
#include "simgpu/streams/channel.h"

namespace sluice::simgpu {

/// An executor's part in virtual time. It works only when it has the turn, at one instant of the
/// device clock, until it has nothing more to do there.
class VirtualExecutor {
 public:
  /// Must come before the client can issue anything. Null unless the client takes part.
  static std::unique_ptr<VirtualExecutor> Attach(const GpuState* gpu, uint32_t executor,
                                                 const ProcessId& client, const Channel* channel);

  /// The device clock; it stands while this executor works.
  uint64_t Now() const;
  /// The first turn: the program may have given it to this executor already.
  void AwaitTurn();
  /// Lets others go on, and returns when this executor has the turn again.
  void Yield(const Rest& rest);

 private:
  VirtualExecutor(const GpuState* gpu, uint32_t executor, const Channel* channel)
      : gpu_(gpu), me_(executor), channel_(channel) {}

  const GpuState* gpu_;
  uint32_t me_;
  const Channel* channel_;
};

}  // namespace sluice::simgpu
