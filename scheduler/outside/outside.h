// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "common/status.h"
#include "scheduler/ledger/types.h"

namespace sluice::scheduler {

/// What jobs have of the GPU's memory outside the pool: arrays, managed memory, physical memory of
/// their own, driver pools, graphs, contexts. None of it is lent. It is charged before the driver
/// is asked, in bytes, against the *reserve*: what the GPU has beside the pool. A value, like the
/// ledger; an operation that fails leaves it as it was and says why.
///
/// Charges add up requested bytes. What a driver rounds them to is not known here: the difference
/// shows as outside bytes that NVML reports and nobody is charged for.
class OutsideAccount {
 public:
  explicit OutsideAccount(uint64_t reserve_bytes) : reserve_(reserve_bytes) {}

  /// kResourceExhausted: the reserve has no room; the text names who has what of it. `title` names
  /// the job in texts.
  Status Charge(JobId job, const std::string& title, uint32_t family, uint64_t bytes);
  /// kInvalidArgument: more than is charged.
  Status Uncharge(JobId job, uint32_t family, uint64_t bytes);
  /// The job and its contexts are gone.
  void Remove(JobId job) { jobs_.erase(job); }

  uint64_t reserve() const { return reserve_; }
  uint64_t charged() const;
  uint64_t charged(JobId job) const;
  uint64_t charged(JobId job, uint32_t family) const;
  struct Entry {
    std::string title;
    std::map<uint32_t, uint64_t> families;
  };
  const std::map<JobId, Entry>& jobs() const { return jobs_; }
  /// By family; empty for a job that was never charged.
  std::map<uint32_t, uint64_t> families(JobId job) const;

 private:
  std::string Holders() const;

  uint64_t reserve_;
  std::map<JobId, Entry> jobs_;
};

}  // namespace sluice::scheduler
