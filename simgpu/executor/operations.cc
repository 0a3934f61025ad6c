// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <algorithm>
#include <cstring>

#include "simgpu/executor/faults.h"
#include "simgpu/executor/runner.h"
#include "simgpu/streams/control.h"

/// The part of Runner that carries out single operations.
namespace sluice::simgpu {

unsigned char* Runner::Staged(uint64_t offset, uint64_t bytes) {
  if (offset > kStagingBytes || bytes > kStagingBytes - offset) return nullptr;
  return channel_->staging + offset;
}

CUresult Runner::RunKernel(const Command& command) {
  const auto& k = command.kernel;
  const Function* function = modules_->Get(k.function);
  if (function == nullptr || k.arg_bytes < function->arg_bytes) return CUDA_ERROR_LAUNCH_FAILED;
  const unsigned char* args =
      (command.flags & kSourceStaged) != 0 ? Staged(k.staged_args, k.arg_bytes) : k.args;
  if (args == nullptr) return CUDA_ERROR_LAUNCH_FAILED;
  // A kernel may write to its parameters, and they must be aligned: it gets its own copy.
  alignas(16) static unsigned char copy[64 * 1024];
  const void* params[kMaxParams];
  memcpy(copy, args, std::min<size_t>(k.arg_bytes, sizeof copy));
  for (size_t i = 0; i < function->offsets.size(); ++i) params[i] = copy + function->offsets[i];

  const double threads =
      static_cast<double>(k.grid[0]) * k.grid[1] * k.grid[2] * k.block[0] * k.block[1] * k.block[2];
  struct Call {
    const SimgpuKernel* kernel;
    const void* const* params;
    unsigned grid[3];
    unsigned block[3];
    unsigned shared_bytes;
  } call{function->kernel,
         params,
         {k.grid[0], k.grid[1], k.grid[2]},
         {k.block[0], k.block[1], k.block[2]},
         k.shared_bytes};
  mappings_->ApplyOracle();
  token_.BeginOperation(gpu_->machine().KernelNs(function->name, threads));
  const CUresult result = RunGuarded(
      function->name.c_str(),
      [](void* p) {
        const auto* c = static_cast<const Call*>(p);
        c->kernel->run(c->params, c->grid, c->block, c->shared_bytes);
      },
      &call);
  token_.EndOperation(true);
  return result;
}

CUresult Runner::RunCopy(const Command& command) {
  const auto& c = command.copy;
  struct Call {
    unsigned char* target;
    const unsigned char* source;
    uint64_t bytes;
  } call{(command.flags & kTargetStaged) != 0 ? Staged(c.target, c.bytes)
                                              : mappings_->Resolve(c.target, c.bytes),
         (command.flags & kSourceStaged) != 0 ? Staged(c.source, c.bytes)
                                              : mappings_->Resolve(c.source, c.bytes),
         c.bytes};
  if (call.target == nullptr || call.source == nullptr) return CUDA_ERROR_ILLEGAL_ADDRESS;
  mappings_->ApplyOracle();
  token_.BeginOperation(gpu_->machine().CopyNs(c.bytes));
  const CUresult result = RunGuarded(
      "copy",
      [](void* p) {
        const auto* call_in = static_cast<const Call*>(p);
        memmove(call_in->target, call_in->source, call_in->bytes);
      },
      &call);
  token_.EndOperation(false);
  return result;
}

CUresult Runner::RunMemset(const Command& command) {
  const auto& m = command.memset;
  const uint64_t bytes = m.count * m.width;
  struct Call {
    unsigned char* target;
    uint64_t count;
    uint32_t value;
    uint32_t width;
  } call{mappings_->Resolve(m.target, bytes), m.count, m.value, m.width};
  if (call.target == nullptr) return CUDA_ERROR_ILLEGAL_ADDRESS;
  mappings_->ApplyOracle();
  token_.BeginOperation(gpu_->machine().MemsetNs(bytes));
  const CUresult result = RunGuarded(
      "memset",
      [](void* p) {
        const auto* c = static_cast<const Call*>(p);
        if (c->width == 1) {
          ::memset(c->target, static_cast<int>(c->value & 0xff), c->count);
        } else {
          std::fill_n(reinterpret_cast<uint32_t*>(c->target), c->count, c->value);
        }
      },
      &call);
  token_.EndOperation(false);
  return result;
}

/// Release: whoever sees the value also sees everything that the stream did before.
CUresult Runner::WriteValue(const Command& command) {
  struct Call {
    uint64_t* target;
    uint64_t value;
  } call{reinterpret_cast<uint64_t*>(mappings_->Resolve(command.value.address, 8)),
         command.value.value};
  if (call.target == nullptr) return CUDA_ERROR_ILLEGAL_ADDRESS;
  mappings_->ApplyOracle();
  return RunGuarded(
      "cuStreamWriteValue64",
      [](void* p) {
        const auto* c = static_cast<const Call*>(p);
        __atomic_store_n(c->target, c->value, __ATOMIC_RELEASE);
      },
      &call);
}

void Runner::RecordEvent(const Command& command) {
  if (command.event.slot >= kEventSlots) return;  // an event without timing
  channel_->event_ns[command.event.slot].store(DeviceClockNs(*gpu_), std::memory_order_relaxed);
}

}  // namespace sluice::simgpu
