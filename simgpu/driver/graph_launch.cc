// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "simgpu/driver/graph_launch.h"

#include <cstdio>
#include <memory>

#include "simgpu/driver/driver.h"
#include "simgpu/driver/graph_state.h"

namespace sluice::simgpu {
namespace {

/// The stream that `handle` means, in its own context or the current one.
CUresult FindStream(CUstream handle, bool per_thread, Context** context, CUstream* stream,
                    bool* capturing) {
  const CUresult result = StreamsOwnContext(handle, context);
  if (result != CUDA_SUCCESS) return result;
  const CommandQueue::Lock lock((*context)->mutex);
  return (*context)->ResolveToCapture(handle, per_thread, stream, capturing);
}

CUresult PrepareMemory(const GraphCall& call, CUgraphExec exec, MemoryEffects* effects) {
  if (exec->graph->memory_nodes == 0) return CUDA_SUCCESS;
  const bool free_first = (exec->flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH) != 0;
  return call->allocations.Prepare(exec->graph, free_first, effects);
}

/// Issues the launch as one operation. Returns its position, 0 if the context has failed.
uint64_t Issue(const std::shared_ptr<PreparedLaunch>& launch, Context* context, CUstream stream) {
  CommandQueue& queue = context->queue();
  CommandQueue::Lock lock(context->mutex);
  const uint64_t bytes = launch->program.bytes();
  const std::optional<uint64_t> staged = queue.Stage(bytes, lock);
  if (!staged) return 0;
  unsigned char* memory = queue.Staged(*staged);
  std::vector<uint64_t> tickets;
  for (const PreparedLaunch::HostCall& call : launch->calls) {
    // The launch lives as long as one of its functions may still be called.
    tickets.push_back(context->ExpectHostFunction(
        [launch, memory, function = call.function] { function(memory); }));
    launch->program.command(call.step).host.ticket = tickets.back();
  }
  launch->program.Write(memory, *staged);
  Command command{};
  command.kind = CommandKind::kGraph;
  command.graph.program = *staged;
  command.graph.bytes = bytes;
  const uint64_t id = context->Issue(stream, &command, lock);
  queue.ReleaseStaged(*staged, stream->slot, id);
  if (id == 0) {
    for (const uint64_t ticket : tickets) context->ForgetHostFunction(ticket);
    return 0;
  }
  const uint64_t mark = PackMark(stream->slot, id);
  for (const CUevent event : launch->records) {
    event->capture.session.store(0);
    event->mark.store(mark);
  }
  return mark;
}

}  // namespace

CUresult LaunchGraph(CUgraphExec exec, CUstream handle, bool per_thread) {
  Context* context = nullptr;
  CUstream stream = nullptr;
  bool capturing = false;
  CUresult result = FindStream(handle, per_thread, &context, &stream, &capturing);
  if (result != CUDA_SUCCESS) return result;
  // Graphs are embedded as nodes, not by launching them.
  if (capturing) return context->driver()->graphs->captures.Refuse(stream->capture);
  const auto launch = std::make_shared<PreparedLaunch>();
  MemoryEffects effects;
  {
    const GraphCall call;
    if (call.result() != CUDA_SUCCESS) return call.result();
    if (!IsLive(exec)) return CUDA_ERROR_INVALID_VALUE;
    result = PrepareMemory(call, exec, &effects);
    if (result != CUDA_SUCCESS) return result;
    result = PrepareLaunch(exec, context, stream, launch.get());
    if (result != CUDA_SUCCESS) {
      call->allocations.Launched(effects, context, 0);
      return result;
    }
    if (launch->program.bytes() > kStagingBytes) {
      call->allocations.Launched(effects, context, 0);
      fprintf(stderr, "simulated GPU: a launch of %zu graph steps with %llu bytes is too large\n",
              launch->program.size(), static_cast<unsigned long long>(launch->program.bytes()));
      return CUDA_ERROR_OUT_OF_MEMORY;
    }
  }
  const uint64_t mark = Issue(launch, context, stream);
  const GraphCall call;
  call->allocations.Launched(effects, context, mark);
  if (mark == 0) return context->queue().error();
  if (IsLive(exec)) {
    exec->context = context;
    exec->mark = mark;
  }
  return CUDA_SUCCESS;
}

/// What a launch needs on the device is sent with it, but for memory.
CUresult UploadGraph(CUgraphExec exec, CUstream handle, bool per_thread) {
  Context* context = nullptr;
  CUstream stream = nullptr;
  bool capturing = false;
  const CUresult result = FindStream(handle, per_thread, &context, &stream, &capturing);
  if (result != CUDA_SUCCESS) return result;
  const GraphCall call;
  if (call.result() != CUDA_SUCCESS) return call.result();
  if (!IsLive(exec)) return CUDA_ERROR_INVALID_VALUE;
  return call->allocations.Back(exec->graph);
}

}  // namespace sluice::simgpu
