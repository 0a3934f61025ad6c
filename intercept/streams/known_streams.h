// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <stdint.h>

#include "common/cuda/abi.h"
#include "intercept/streams/stream_table.h"

namespace sluice {

/// A stream that this thread has used lately: with it the usual call neither asks the driver nor
/// takes a lock. Remembered for one generation, that is until any stream or context is destroyed.
struct KnownStream {
  const void* owner;  // who remembers
  uint64_t generation;
  CUstream handle;
  StreamName name;  // a default stream is another one in each context
  uint32_t slot;
  bool served;  // the context is on the session's GPU
};

inline constexpr uint32_t kKnownStreams = 8;
extern constinit thread_local KnownStream t_known_streams[kKnownStreams];

inline KnownStream& PlaceOfKnown(CUstream stream) {
  // Handles are addresses; the default streams' are small numbers.
  const auto handle = reinterpret_cast<uintptr_t>(stream);
  return t_known_streams[(handle >> 4 ^ handle) % kKnownStreams];
}

inline bool IsDefault(CUstream stream) {
  return stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD;
}

}  // namespace sluice
