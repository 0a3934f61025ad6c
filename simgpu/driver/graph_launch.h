// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <functional>
#include <vector>

#include "simgpu/driver/context.h"
#include "simgpu/graph/program.h"

namespace sluice::simgpu {

/// One launch of a graph, made ready: a copy of all that it needs.
struct PreparedLaunch {
  struct HostCall {
    uint32_t step;
    /// Gets where the program is in this process.
    std::function<void(unsigned char* program)> function;
  };
  ProgramBuilder program;
  std::vector<HostCall> calls;
  std::vector<CUevent> records;
};

/// Turns the nodes of an executable graph into operations of `context`. The lock of the graphs is
/// held.
CUresult PrepareLaunch(CUgraphExec exec, Context* context, CUstream stream, PreparedLaunch* out);

CUresult LaunchGraph(CUgraphExec exec, CUstream stream, bool per_thread);
CUresult UploadGraph(CUgraphExec exec, CUstream stream, bool per_thread);

}  // namespace sluice::simgpu
