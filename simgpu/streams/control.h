// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>

namespace sluice::simgpu {

/// Synchronous requests of a context to its executor, on a seqpacket socket; one reply each. They
/// do not wait for queued operations.
enum class ControlOp : uint32_t {
  kStart,         // first request, a: number of its GPU in the client; reply: b: the executor's pid
  kMapMemory,     // fd, a: device address, b: bytes, c: file offset, d: number of the GPU that the
                  // memory lies on; no access until kProtect
  kProtect,       // a: device address, b: bytes, c: CUmemAccess_flags
  kUnmapMemory,   // a: device address, b: bytes
  kMapHost,       // fd, a: host address in the client, b: bytes, c: file offset, d: writable
  kUnmapHost,     // a: host address
  kLoadModule,    // fd (ELF object) -> a: module
  kUnloadModule,  // a: module
  kGetFunction,   // a: module, text: name -> a: function, b: parameters, sizes
  kMapPeer,       // fd: another context's channel -> a: its number
  kMapShadow,     // as kMapMemory, where copies alone look; no access until kProtectShadow
  kProtectShadow,  // as kProtect
  kUnmapShadow,    // a: device address with which it was mapped
};

inline constexpr uint32_t kMaxParams = 256;

struct ControlRequest {
  ControlOp op;
  uint32_t reserved;
  uint64_t a;
  uint64_t b;
  uint64_t c;
  uint64_t d;
  char text[512];
};

struct ControlReply {
  uint32_t result;  // CUresult
  uint32_t reserved;
  uint64_t a;
  uint64_t b;
  char text[256];  // why, for people
  uint32_t sizes[kMaxParams];
};

/// Descriptors with which the executor is started.
inline constexpr int kControlFd = 3;
inline constexpr int kChannelFd = 4;

/// Offset of parameter i within packed arguments: natural alignment of its size, which is all that
/// the kernel table tells (the greatest power of two that divides the size, at most 16).
inline uint32_t AlignParam(uint32_t offset, uint32_t size) {
  uint32_t alignment = size & (~size + 1);
  if (alignment > 16) alignment = 16;
  if (alignment == 0) alignment = 1;
  return (offset + alignment - 1) & ~(alignment - 1);
}

}  // namespace sluice::simgpu
