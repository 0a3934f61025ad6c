// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "simgpu/executor/peers.h"

#include <sys/mman.h>

namespace sluice::simgpu {

uint32_t Peers::Add(int fd) {
  void* map = mmap(nullptr, sizeof(Channel), PROT_READ, MAP_SHARED, fd, 0);
  if (map == MAP_FAILED) return 0;
  const std::lock_guard lock(mutex_);
  channels_.push_back(static_cast<const Channel*>(map));
  return static_cast<uint32_t>(channels_.size());
}

bool Peers::Reached(uint32_t peer, uint32_t stream, uint64_t id) {
  const std::lock_guard lock(mutex_);
  if (peer == 0 || peer > channels_.size() || stream >= kStreams) return true;
  const Channel* channel = channels_[peer - 1];
  return channel->completed[stream].load(std::memory_order_acquire) >= id ||
         channel->error.load() != 0;
}

}  // namespace sluice::simgpu
