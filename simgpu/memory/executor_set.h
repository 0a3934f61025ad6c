// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdio>
#include <optional>
#include <vector>

#include "common/cuda/abi.h"
#include "simgpu/streams/executor_link.h"

namespace sluice::simgpu {

/// The executors of all contexts of this process. Memory made with the VMM calls and registered
/// host memory are visible in each of them.
class ExecutorSet {
 public:
  void Add(ExecutorLink* link, int ordinal) { members_.push_back({link, ordinal}); }
  void Remove(ExecutorLink* link) {
    std::erase_if(members_, [link](const Member& m) { return m.link == link; });
  }

  /// The same request to all; the first failure counts.
  CUresult CallAll(const ControlRequest& request, int fd = -1) const {
    return Call(std::nullopt, request, fd);
  }
  /// To those on one GPU.
  CUresult CallOn(int ordinal, const ControlRequest& request) const {
    return Call(ordinal, request, -1);
  }

 private:
  struct Member {
    ExecutorLink* link;
    int ordinal;
  };
  CUresult Call(std::optional<int> ordinal, const ControlRequest& request, int fd) const {
    CUresult result = CUDA_SUCCESS;
    for (const Member& member : members_) {
      if (ordinal && member.ordinal != *ordinal) continue;
      const ControlReply reply = member.link->Call(request, fd);
      if (reply.result == CUDA_SUCCESS || result != CUDA_SUCCESS) continue;
      result = static_cast<CUresult>(reply.result);
      fprintf(stderr, "simulated GPU: %s\n", reply.text);
    }
    return result;
  }

  std::vector<Member> members_;
};

}  // namespace sluice::simgpu
