// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/nvml.h"
#include "noderuntime/gpu/device.h"
#include "noderuntime/gpu/driver.h"

namespace sluice::gpu {

/// A GPU behind the CUDA driver (or what stands in for it).
class CudaDevice : public Device {
 public:
  /// The driver's device number `ordinal`; the error names what there is.
  static Result<std::unique_ptr<CudaDevice>> Open(uint32_t ordinal);

  const DeviceInfo& info() const override { return info_; }
  Result<std::vector<UniqueFd>> CreateHandles(uint32_t count, uint64_t bytes) override;
  void AdoptHandles(const std::vector<int>& handles, uint64_t bytes) override;
  Status Poison(uint64_t offset, uint64_t bytes) override;
  Result<std::byte*> AllocateHost(uint64_t bytes) override;
  void FreeHost(std::byte* memory) override;
  Result<CopyTicket> BeginCopies(Direction direction, const std::vector<Piece>& pieces) override;
  Result<bool> CopiesEnded(CopyTicket ticket) override;
  Status AwaitCopies(CopyTicket ticket) override;
  bool IsUsedBy(pid_t pid) override;

 private:
  explicit CudaDevice(const Driver& driver) : driver_(driver) {}
  /// The daemon's own context with the pool in it is current afterwards.
  Status Enter();
  Status MapArena();
  Status End(CopyTicket ticket, CUresult how);

  Driver driver_;
  DeviceInfo info_;
  CUdevice device_ = 0;
  std::unique_ptr<Nvml> nvml_;
  std::vector<int> handle_fds_;  // not owned: they belong to the pool, which lives as long
  uint64_t handle_bytes_ = 0;
  CUcontext context_ = nullptr;
  CUdeviceptr arena_ = 0;
  CUstream copy_stream_ = nullptr;
  std::map<CopyTicket, CUevent> copies_;  // under way; each event is recorded behind them
  CopyTicket next_ticket_ = 1;
};

}  // namespace sluice::gpu
