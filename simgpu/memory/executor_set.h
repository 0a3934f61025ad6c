// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdio>
#include <vector>

#include "common/cuda/abi.h"
#include "simgpu/streams/executor_link.h"

namespace sluice::simgpu {

/// The executors of all contexts of this process. Memory made with the VMM calls and registered
/// host memory are visible in each of them.
class ExecutorSet {
 public:
  void Add(ExecutorLink* link) { links_.push_back(link); }
  void Remove(ExecutorLink* link) { std::erase(links_, link); }

  /// The same request to all; the first failure counts.
  CUresult CallAll(const ControlRequest& request, int fd = -1) const {
    CUresult result = CUDA_SUCCESS;
    for (ExecutorLink* link : links_) {
      const ControlReply reply = link->Call(request, fd);
      if (reply.result == CUDA_SUCCESS || result != CUDA_SUCCESS) continue;
      result = static_cast<CUresult>(reply.result);
      fprintf(stderr, "simulated GPU: %s\n", reply.text);
    }
    return result;
  }

 private:
  std::vector<ExecutorLink*> links_;
};

}  // namespace sluice::simgpu
