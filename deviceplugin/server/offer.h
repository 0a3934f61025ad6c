// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "deviceplugin/granule/device_ids.h"

namespace sluice::deviceplugin {

/// What the node offers at this moment: all its ids, and those that nobody may be given now. Those
/// who watch it are woken when it changes. For several threads.
class Offer {
 public:
  explicit Offer(DeviceIds ids);

  const DeviceIds& ids() const { return ids_; }

  /// All ids of a GPU that is broken, or of one that is whole again.
  void SetHealthy(size_t gpu, bool healthy);
  /// All ids of a GPU that somebody else manages, with the words that say so; empty: nobody does
  /// any more.
  void SetRefused(size_t gpu, std::string why);
  /// Why a container cannot have these ids, in the words of SetRefused; empty: it can.
  std::string Refusal(const std::vector<std::string>& ids) const;
  /// These ids and no others are kept back for who has others already (granule/headroom.h).
  void SetWithheld(std::set<std::string> ids);

  /// These ids and no others are of GPUs that are being drained (granule/drained.h).
  void SetDrained(std::set<std::string> ids);

  /// A GPU's ids by why they are offered or not; a GPU's error goes before all else.
  struct Counts {
    size_t healthy = 0;
    size_t unhealthy = 0;
    size_t withheld = 0;
    friend bool operator==(const Counts&, const Counts&) = default;
  };
  std::vector<Counts> CountsByGpu() const;

  struct Entry {
    const std::string* id;
    bool healthy;
  };
  struct List {
    uint64_t version = 0;  // larger with every change
    std::vector<Entry> entries;
  };
  /// The list that is not `known` (0: none is), as soon as there is one; an older version when
  /// `Close` was called or `timeout_ms` is over.
  List Await(uint64_t known, int timeout_ms) const;

  /// Nobody waits here any more.
  void Close();
  bool closed() const;

 private:
  List Now() const;
  bool Offered(const std::string& id, uint32_t gpu) const;
  void Replace(std::set<std::string>* known, std::set<std::string> ids);

  const DeviceIds ids_;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::vector<bool> healthy_;         // by GPU
  std::vector<std::string> refused_;  // by GPU, why; empty: it is not
  std::set<std::string> withheld_;
  std::set<std::string> drained_;
  uint64_t version_ = 1;
  bool closed_ = false;
};

}  // namespace sluice::deviceplugin
