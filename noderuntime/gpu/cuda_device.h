// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/nvml.h"
#include "noderuntime/gpu/device.h"
#include "noderuntime/gpu/driver.h"

namespace sluice::gpu {

/// A GPU behind the CUDA driver (or what stands in for it). The daemon's context, its mapping of
/// the pool and its streams are made when they are first needed and stay until the process ends.
class CudaDevice : public Device {
 public:
  /// The driver's device number `ordinal`; the error names what there is.
  static Result<std::unique_ptr<CudaDevice>> Open(uint32_t ordinal);

  const DeviceInfo& info() const override { return info_; }
  Result<std::vector<UniqueFd>> CreateHandles(uint32_t count, uint64_t bytes) override;
  void AdoptHandles(const std::vector<int>& handles, uint64_t bytes) override;
  Status Poison(uint64_t offset, uint64_t bytes) override;
  bool IsUsedBy(pid_t pid) override;

  // cuda_copies.cc
  Result<std::byte*> AllocateHost(uint64_t bytes) override;
  void FreeHost(std::byte* host) override;
  Result<CopyTicket> StartCopies(CopyDirection direction,
                                 const std::vector<CopySpan>& spans) override;
  Result<bool> CopiesEnded(CopyTicket ticket) override;
  Status WaitForCopies(CopyTicket ticket) override;

 private:
  struct UnderWay {
    CUstream stream = nullptr;
    CUevent ended = nullptr;
  };

  explicit CudaDevice(const Driver& driver) : driver_(driver) {}
  /// The daemon's context is there and current.
  Status EnterContext();
  /// And the pool is mapped in it; all of it or nothing.
  Status MapArena();
  Status MapHandles(CUdeviceptr arena);
  uint64_t pool_bytes() const { return handle_bytes_ * handle_fds_.size(); }

  // cuda_copies.cc
  Result<CUstream> StreamOf(CopyDirection direction);
  Status Queue(CopyDirection direction, const std::vector<CopySpan>& spans, CUstream stream,
               CUevent ended);
  Status Drop(CopyTicket ticket, const Status& status);

  Driver driver_;
  DeviceInfo info_;
  CUdevice device_ = 0;
  std::unique_ptr<Nvml> nvml_;
  std::vector<int> handle_fds_;  // not owned: they belong to the pool, which lives as long
  uint64_t handle_bytes_ = 0;
  CUcontext context_ = nullptr;
  CUdeviceptr arena_ = 0;
  std::array<CUstream, 2> streams_ = {};  // by direction: each has a copy engine of its own
  std::map<CopyTicket, UnderWay> under_way_;
  CopyTicket last_ticket_ = 0;
};

}  // namespace sluice::gpu
