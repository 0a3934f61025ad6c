// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "common/status.h"
#include "common/unique_fd.h"
#include "noderuntime/gpu/device.h"

namespace sluice::gpu {

/// The physical memory that is lent: its handles as descriptors, in pool order. Created once and
/// kept until the daemon ends, or its keeper.
class Pool {
 public:
  static Result<Pool> Create(Device* device, uint32_t handle_count, uint64_t handle_bytes) {
    Result<std::vector<UniqueFd>> handles = device->CreateHandles(handle_count, handle_bytes);
    if (!handles.ok()) return handles.status().Annotate("pool");
    return Pool(std::move(*handles), handle_bytes);
  }

  /// One that another daemon has created.
  static Pool Adopt(Device* device, std::vector<UniqueFd> handles, uint64_t handle_bytes) {
    Pool pool(std::move(handles), handle_bytes);
    device->AdoptHandles(pool.fds(), handle_bytes);
    return pool;
  }

  uint64_t handle_bytes() const { return handle_bytes_; }
  size_t handles() const { return handles_.size(); }
  uint64_t bytes() const { return handle_bytes_ * handles_.size(); }
  std::vector<int> fds() const {
    std::vector<int> fds;
    for (const UniqueFd& handle : handles_) fds.push_back(handle.get());
    return fds;
  }

 private:
  Pool(std::vector<UniqueFd> handles, uint64_t handle_bytes)
      : handles_(std::move(handles)), handle_bytes_(handle_bytes) {}

  std::vector<UniqueFd> handles_;
  uint64_t handle_bytes_;
};

}  // namespace sluice::gpu
