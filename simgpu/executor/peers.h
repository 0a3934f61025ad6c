// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "simgpu/streams/channel.h"

namespace sluice::simgpu {

/// The channels of other contexts of the same process, for operations that wait for those. The
/// control thread adds, the run thread looks.
class Peers {
 public:
  /// Maps a channel. Returns its number, from 1 on; 0 if that failed.
  uint32_t Add(int fd);
  /// Whether an operation of that context is over. A context that failed has nothing to wait for.
  bool Reached(uint32_t peer, uint32_t stream, uint64_t id);

 private:
  std::mutex mutex_;
  std::vector<const Channel*> channels_;
};

}  // namespace sluice::simgpu
