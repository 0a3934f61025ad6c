// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "common/cuda/abi.h"
#include "simgpu/driver/slab.h"
#include "simgpu/graph/capture.h"
#include "simgpu/sharing/event_board.h"
#include "simgpu/streams/channel.h"

/// What the driver's opaque handles point to; they live in a Slab.
namespace sluice::simgpu {
class Context;

/// What a kernel may ask for without saying so before.
inline constexpr int kDefaultDynamicShared = 48 * 1024;

/// What the oldest launches are told before, call by call.
struct LaunchParts {
  unsigned block[3] = {};
  unsigned shared_bytes = 0;
  std::vector<unsigned char> args;
};

/// Event positions pack a stream and an operation into one word, so that queries need no lock.
inline constexpr uint64_t kIdBits = 52;
inline uint64_t PackMark(uint32_t stream, uint64_t id) {
  return static_cast<uint64_t>(stream) << kIdBits | id;
}
inline uint32_t MarkStream(uint64_t mark) { return static_cast<uint32_t>(mark >> kIdBits); }
inline uint64_t MarkId(uint64_t mark) { return mark & ((uint64_t{1} << kIdBits) - 1); }
static_assert(uint64_t{kStreams} << kIdBits != 0);

}  // namespace sluice::simgpu

struct CUstream_st {
  static constexpr uint32_t kMagic = 0x53545231;
  std::atomic<uint32_t> magic{0};
  sluice::simgpu::Context* context = nullptr;
  uint32_t slot = 0;
  bool blocking = true;
  bool per_thread = false;
  int priority = 0;
  CUgreenCtx green = nullptr;     // that it was made in; null: none
  unsigned long long number = 0;  // cuStreamGetId
  std::atomic<uint64_t> last{0};  // id of the operation issued last
  std::vector<uint64_t> follows;  // by stream slot: operations that this stream runs behind
  sluice::simgpu::StreamCapture capture;
};

struct CUevent_st {
  static constexpr uint32_t kMagic = 0x45565431;
  std::atomic<uint32_t> magic{0};
  sluice::simgpu::Context* context = nullptr;
  unsigned flags = 0;
  uint32_t slot = 0;              // of the time stamp; kEventSlots without timing
  std::atomic<uint64_t> mark{0};  // packed position of the last record; 0: never recorded
  sluice::simgpu::EventCapture capture;
  sluice::simgpu::EventBoard::Name shared;  // generation 0: of this process only
  bool is_shared() const { return shared.generation != 0; }
};

struct CUmod_st {
  static constexpr uint32_t kMagic = 0x4d4f4431;
  std::atomic<uint32_t> magic{0};
  sluice::simgpu::Context* context = nullptr;
  uint64_t module = 0;               // the executor's number
  std::vector<std::string> kernels;  // the names of all
  std::vector<CUfunction> functions;
  CUlibrary library = nullptr;  // whose module this is, if it is one's
};

struct CUfunc_st {
  static constexpr uint32_t kMagic = 0x46554e31;
  std::atomic<uint32_t> magic{0};
  sluice::simgpu::Context* context = nullptr;
  CUmodule module = nullptr;
  std::string name;
  uint32_t function = 0;  // the executor's number
  std::vector<uint32_t> sizes;
  std::vector<uint32_t> offsets;
  uint32_t arg_bytes = 0;
  int max_dynamic_shared = sluice::simgpu::kDefaultDynamicShared;
  sluice::simgpu::LaunchParts parts;  // under the context's lock
};

struct CUlib_st {
  static constexpr uint32_t kMagic = 0x4c494231;
  std::atomic<uint32_t> magic{0};
  std::string object;
  std::vector<CUkernel> kernels;
  std::mutex mutex;  // of what follows; taken before a context's
  std::map<sluice::simgpu::Context*, CUmodule> modules;
};

struct CUkern_st {
  static constexpr uint32_t kMagic = 0x4b524e31;
  std::atomic<uint32_t> magic{0};
  CUlibrary library = nullptr;
  std::string name;
  int max_dynamic_shared = sluice::simgpu::kDefaultDynamicShared;
};
