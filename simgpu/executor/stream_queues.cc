// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "simgpu/executor/stream_queues.h"

#include <algorithm>

namespace sluice::simgpu {

StreamQueues::StreamQueues() : queue_(kStreams) {}

void StreamQueues::Push(const Command& command) {
  std::deque<Item>& queue = queue_[command.stream];
  if (queue.empty()) active_.push_back(command.stream);
  uint64_t after = 0;
  if (command.stream == kLegacyStream) {
    last_legacy_ = command.id;
  } else if ((command.flags & kBlocking) != 0 && last_legacy_ > legacy_done_) {
    after = last_legacy_;
  }
  queue.push_back({command, after});
}

const Command* StreamQueues::Pick(const Ready& ready, const Ready& costs_time) const {
  uint64_t oldest_blocking = UINT64_MAX;
  for (const uint32_t stream : active_) {
    const Command& head = queue_[stream].front().command;
    if (stream != kLegacyStream && (head.flags & kBlocking) != 0) {
      oldest_blocking = std::min(oldest_blocking, head.id);
    }
  }
  const Command* best = nullptr;
  const Command* best_free = nullptr;
  for (const uint32_t stream : active_) {
    const Item& item = queue_[stream].front();
    const Command& head = item.command;
    if (stream == kLegacyStream ? oldest_blocking < head.id : item.after_legacy > legacy_done_) {
      continue;
    }
    const Command*& slot = costs_time(head) ? best : best_free;
    if (slot != nullptr && slot->id < head.id) continue;
    if (ready(head)) slot = &head;
  }
  return best_free != nullptr ? best_free : best;
}

void StreamQueues::Pop(uint32_t stream) {
  std::deque<Item>& queue = queue_[stream];
  if (stream == kLegacyStream) legacy_done_ = queue.front().command.id;
  queue.pop_front();
  if (queue.empty()) active_.erase(std::find(active_.begin(), active_.end(), stream));
}

}  // namespace sluice::simgpu
