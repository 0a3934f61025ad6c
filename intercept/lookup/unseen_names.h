// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <atomic>
#include <string_view>

namespace sluice {

/// Which names were looked up before. Any thread at any time, without a lock: dlsym is asked by
/// everybody, also while the library is at work. Counting them takes none either. More than kMost
/// names are not told apart.
class UnseenNames {
 public:
  static constexpr size_t kMost = 1024;

  constexpr UnseenNames() = default;

  /// True the first time.
  bool Add(std::string_view name) {
    const uint64_t hash = HashOf(name);
    for (size_t i = 0; i < kMost; ++i) {
      std::atomic<uint64_t>& slot = slots_[(hash + i) % kMost];
      uint64_t found = 0;
      if (slot.compare_exchange_strong(found, hash, std::memory_order_relaxed)) return true;
      if (found == hash) return false;
    }
    return false;
  }

 private:
  /// FNV-1a; never 0, which is an empty slot.
  static constexpr uint64_t HashOf(std::string_view name) {
    uint64_t hash = 0xcbf29ce484222325u;
    for (const char c : name) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3u;
    return hash == 0 ? 1 : hash;
  }

  std::atomic<uint64_t> slots_[kMost] = {};
};

}  // namespace sluice
