// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "noderuntime/gateway/node_view.h"

namespace sluice::gateway {

/// How long daemons that are there have not answered: what one look alone cannot tell. Where there
/// is no daemon, or where it was not looked for before, it begins anew. For several threads.
class AnswerAges {
 public:
  /// Fills in GpuView::answer_age_ns of what was found at `now_ns`, of a monotonic clock.
  void Note(uint64_t now_ns, std::vector<GpuView>* gpus) {
    const std::lock_guard<std::mutex> guard(mutex_);
    for (GpuView& gpu : *gpus) {
      if (!gpu.there) {
        last_ns_.erase(gpu.number);
        continue;
      }
      // One that was found silent for the first time has been so for as long as it was asked.
      const uint64_t asked_ns = gpu.look_ns < now_ns ? now_ns - gpu.look_ns : 0;
      const auto last = last_ns_.try_emplace(gpu.number, asked_ns).first;
      if (gpu.up) last->second = now_ns;
      gpu.answer_age_ns = now_ns < last->second ? 0 : now_ns - last->second;
    }
  }

 private:
  std::mutex mutex_;
  std::map<uint32_t, uint64_t> last_ns_;  // by the GPU's number
};

}  // namespace sluice::gateway
