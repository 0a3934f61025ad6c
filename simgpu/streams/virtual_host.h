// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <memory>

#include "simgpu/sharing/gpu_state.h"
#include "simgpu/streams/channel.h"

namespace sluice::simgpu {

/// A program's part in virtual time: its clock, and its waits. Any thread of the program may call.
class VirtualHost {
 public:
  /// This process takes part; returns when all participants do and it is its turn. The rank is that
  /// of SLUICE_SIMGPU_RANK. Errors say what is allowed.
  static Result<std::unique_ptr<VirtualHost>> Join(const GpuState* gpu);

  /// The CPU clock of this process.
  uint64_t Clock() const;
  /// The program or the driver computes; returns the clock then. Lets participants with a smaller
  /// clock go first.
  uint64_t Spend(uint64_t ns);
  /// The same for a call that changes mappings, where these go one at a time.
  void SpendInTurn(uint64_t ns);
  /// A question is asked: it costs its time, and the device has come as far as the clock.
  void Ask();

  // Waits until the device has come that far, or the context has failed or is gone.
  void AwaitOperation(uint32_t executor, const Channel* channel, uint32_t stream, uint64_t id);
  void AwaitFinished(uint32_t executor, const Channel* channel, uint64_t count);
  /// Until anything has happened on the device.
  void AwaitProgress();

  /// The executor has something to look at.
  void Wake(uint32_t executor);
  /// A host function has returned: who slept until then gets the turn back.
  void FunctionReturned(uint32_t executor);

  /// Whether what a wait is for is over.
  static bool Over(const VirtualWait& wait, const Channel& channel);

 private:
  VirtualHost(const GpuState* gpu, uint32_t rank) : gpu_(gpu), rank_(rank) {}
  void Wait(VirtualWait wait, const Channel* channel);
  void TakeTurn();
  uint64_t Spend(uint64_t ns, bool in_turn);

  const GpuState* gpu_;
  uint32_t rank_;
};

/// Lasts as long as a wait: one that found nothing to wait for costs a question's time, so that a
/// loop around it ends. Null where the clock follows real time.
class WaitCost {
 public:
  explicit WaitCost(VirtualHost* host)
      : host_(host), before_(host == nullptr ? 0 : host->Clock()) {}
  ~WaitCost() {
    if (host_ != nullptr && host_->Clock() == before_) host_->Ask();
  }
  WaitCost(const WaitCost&) = delete;
  WaitCost& operator=(const WaitCost&) = delete;

 private:
  VirtualHost* host_;
  uint64_t before_;
};

}  // namespace sluice::simgpu
