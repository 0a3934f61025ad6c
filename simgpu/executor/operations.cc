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

namespace {

/// What the launch says itself, else what the machine file says of the kernel.
uint64_t KernelNs(const Machine& machine, const Function& function, const void* const* params,
                  double threads) {
  if (!function.duration) return machine.KernelNs(function.name, threads);
  uint64_t ns = 0;
  memcpy(&ns, params[*function.duration], sizeof ns);
  return machine.DeclaredNs(function.name, ns);
}

}  // namespace

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
  const uint64_t ns = KernelNs(gpu_->machine(), *function, params, threads);
  Begin(command, ns, gpu_->machine().Demand(function->name, ns));
  const CUresult result = RunGuarded(
      function->name.c_str(),
      [](void* p) {
        const auto* c = static_cast<const Call*>(p);
        c->kernel->run(c->params, c->grid, c->block, c->shared_bytes);
      },
      &call);
  End(command);
  return result;
}

namespace {

/// Bytes from the first to the last one of a box.
uint64_t Extent(uint64_t row, uint64_t rows, uint64_t pitch, uint64_t layers, uint64_t layer) {
  if (rows == 0 || layers == 0) return row;
  return (layers - 1) * layer + (rows - 1) * pitch + row;
}

}  // namespace

CUresult Runner::RunCopy(const Command& command) {
  const auto& c = command.copy;
  const uint64_t target_bytes = Extent(c.bytes, c.rows, c.target_pitch, c.layers, c.target_layer);
  const uint64_t source_bytes = Extent(c.bytes, c.rows, c.source_pitch, c.layers, c.source_layer);
  struct Call {
    unsigned char* target;
    const unsigned char* source;
    const Command* command;
  } call{(command.flags & kTargetStaged) != 0 ? Staged(c.target, target_bytes)
                                              : mappings_->ResolveForCopy(c.target, target_bytes),
         (command.flags & kSourceStaged) != 0 ? Staged(c.source, source_bytes)
                                              : mappings_->ResolveForCopy(c.source, source_bytes),
         &command};
  if (call.target == nullptr || call.source == nullptr) return CUDA_ERROR_ILLEGAL_ADDRESS;
  mappings_->ApplyOracle();
  const uint64_t rows = c.rows == 0 ? 1 : c.rows * c.layers;
  const Machine& machine = gpu_->machine();
  const bool inside = EngineOf(command) == Engine::kCompute;
  const uint64_t bytes = c.bytes * rows;
  const uint64_t ns = inside                 ? machine.DeviceCopyNs(bytes)
                      : BetweenGpus(command) ? machine.PeerCopyNs(bytes)
                                             : machine.CopyNs(bytes);
  Begin(command, ns, {machine.least_share, inside ? 1.0 : 0.0});
  const CUresult result = RunGuarded(
      "copy",
      [](void* p) {
        const auto* in = static_cast<const Call*>(p);
        const auto& box = in->command->copy;
        if (box.rows == 0) {
          memmove(in->target, in->source, box.bytes);
          return;
        }
        for (uint64_t layer = 0; layer < box.layers; ++layer) {
          for (uint64_t row = 0; row < box.rows; ++row) {
            memmove(in->target + layer * box.target_layer + row * box.target_pitch,
                    in->source + layer * box.source_layer + row * box.source_pitch, box.bytes);
          }
        }
      },
      &call);
  End(command);
  return result;
}

CUresult Runner::RunMemset(const Command& command) {
  const auto& m = command.memset;
  const uint64_t row_bytes = m.count * m.width;
  const uint64_t rows = m.rows == 0 ? 1 : m.rows;
  struct Call {
    unsigned char* target;
    const Command* command;
  } call{mappings_->Resolve(m.target, Extent(row_bytes, rows, m.pitch, 1, 0)), &command};
  if (call.target == nullptr) return CUDA_ERROR_ILLEGAL_ADDRESS;
  mappings_->ApplyOracle();
  Begin(command, gpu_->machine().MemsetNs(row_bytes * rows), {gpu_->machine().least_share, 1});
  const CUresult result = RunGuarded(
      "memset",
      [](void* p) {
        const auto* in = static_cast<const Call*>(p);
        const auto& area = in->command->memset;
        for (uint64_t row = 0; row < std::max<uint64_t>(area.rows, 1); ++row) {
          unsigned char* at = in->target + row * area.pitch;
          if (area.width == 1) {
            ::memset(at, static_cast<int>(area.value & 0xff), area.count);
          } else if (area.width == 2) {
            std::fill_n(reinterpret_cast<uint16_t*>(at), area.count,
                        static_cast<uint16_t>(area.value));
          } else {
            std::fill_n(reinterpret_cast<uint32_t*>(at), area.count, area.value);
          }
        }
      },
      &call);
  End(command);
  return result;
}

/// Release: whoever sees the value also sees everything that the stream did before.
CUresult Runner::WriteValue(const Command& command) {
  const uint32_t width = command.value.width == 4 ? 4 : 8;
  struct Call {
    unsigned char* target;
    uint64_t value;
    uint32_t width;
  } call{mappings_->Resolve(command.value.address, width), command.value.value, width};
  if (call.target == nullptr) return CUDA_ERROR_ILLEGAL_ADDRESS;
  mappings_->ApplyOracle();
  return RunGuarded(
      "cuStreamWriteValue",
      [](void* p) {
        const auto* c = static_cast<const Call*>(p);
        if (c->width == 4) {
          __atomic_store_n(reinterpret_cast<uint32_t*>(c->target), static_cast<uint32_t>(c->value),
                           __ATOMIC_RELEASE);
        } else {
          __atomic_store_n(reinterpret_cast<uint64_t*>(c->target), c->value, __ATOMIC_RELEASE);
        }
      },
      &call);
}

void Runner::RecordEvent(const Command& command) {
  if (command.event.shared != 0 && Board() != nullptr) {
    Board()->Complete(command.event.shared - 1, command.event.record);
  }
  if (command.event.slot >= kEventSlots) return;  // an event without timing
  const bool standing = fluid_ == nullptr || virtual_time_ != nullptr;
  const uint64_t now = standing ? DeviceClockNs(*gpu_) : Since();
  channel_->event_ns[command.event.slot].store(now, std::memory_order_relaxed);
}

}  // namespace sluice::simgpu
