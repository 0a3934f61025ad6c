// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <stdint.h>

#include "intercept/base/paged_array.h"
#include "intercept/blocks/arena.h"

namespace sluice {

/// The releases of this client whose fences may not be reached yet. A daemon that was started anew
/// knows only of those that its predecessor had read; the client tells it the rest. Bounded: a
/// client with too many open fences waits with the next release.
class OpenReleases {
 public:
  static constexpr uint32_t kMost = 256;

  constexpr OpenReleases() = default;

  /// False: the host is out of memory.
  bool Init(uint32_t units);
  void FreeMemory();

  /// Whether one more release has a place: the oldest of kMost is reached by now.
  bool HasRoom(const protocol::MarkPage& marks) const;
  void Add(const UnitRelease& release);

  /// Whether `unit`, which the client does not hold, was given back with a fence that is still
  /// open.
  bool IsOpen(uint32_t unit, const protocol::MarkPage& marks) const;
  /// For each stream slot the latest mark that an open fence waits for. `terms` has room for one
  /// per slot; returns how many there are. All of them reached: every open fence is.
  uint32_t Fence(const protocol::MarkPage& marks, protocol::FenceTerm* terms) const;

 private:
  struct Entry {
    uint64_t number;  // 0: none
    uint32_t terms;
    protocol::FenceTerm fence[protocol::kMaxFenceTerms];
  };
  static bool Reached(const Entry& entry, const protocol::MarkPage& marks);

  uint64_t last_ = 0;
  Entry entry_[kMost] = {};
  PagedArray<uint64_t> release_of_;  // by unit: the number of its last release, 0: none or done
};

}  // namespace sluice
