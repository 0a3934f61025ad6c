// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/outside/outside.h"

#include "common/bytes.h"

namespace sluice::scheduler {

uint64_t OutsideAccount::charged() const {
  uint64_t sum = 0;
  for (const auto& [job, entry] : jobs_) sum += charged(job);
  return sum;
}

uint64_t OutsideAccount::charged(JobId job) const {
  const auto found = jobs_.find(job);
  if (found == jobs_.end()) return 0;
  uint64_t sum = 0;
  for (const auto& [family, bytes] : found->second.families) sum += bytes;
  return sum;
}

uint64_t OutsideAccount::charged(JobId job, uint32_t family) const {
  const auto found = jobs_.find(job);
  if (found == jobs_.end()) return 0;
  const auto of_family = found->second.families.find(family);
  return of_family == found->second.families.end() ? 0 : of_family->second;
}

std::map<uint32_t, uint64_t> OutsideAccount::families(JobId job) const {
  const auto found = jobs_.find(job);
  return found == jobs_.end() ? std::map<uint32_t, uint64_t>() : found->second.families;
}

std::string OutsideAccount::Holders() const {
  std::string text;
  for (const auto& [job, entry] : jobs_) {
    if (charged(job) == 0) continue;
    text += (text.empty() ? "" : ", ") + entry.title + " has " + FormatBytes(charged(job));
  }
  return text.empty() ? "nobody has any of it" : text;
}

Status OutsideAccount::Charge(JobId job, const std::string& title, uint32_t family,
                              uint64_t bytes) {
  const uint64_t room = reserve_ - charged();  // never negative: each charge was asked here
  if (bytes > room) {
    return Status(StatusCode::kResourceExhausted,
                  title + " asks for " + FormatBytes(bytes) + " outside the pool, where " +
                      FormatBytes(room) + " of " + FormatBytes(reserve_) + " are left (" +
                      Holders() + ")");
  }
  Entry& entry = jobs_[job];
  entry.title = title;
  entry.families[family] += bytes;
  return {};
}

Status OutsideAccount::Uncharge(JobId job, uint32_t family, uint64_t bytes) {
  const uint64_t now = charged(job, family);
  if (bytes > now) {
    return Status(StatusCode::kInvalidArgument, "gives back " + FormatBytes(bytes) +
                                                    " of memory outside the pool, where it has " +
                                                    FormatBytes(now) + " of that kind");
  }
  if (bytes > 0) jobs_.at(job).families.at(family) -= bytes;
  return {};
}

}  // namespace sluice::scheduler
