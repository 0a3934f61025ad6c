// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/hosttier/host_tier.h"

#include <algorithm>
#include <utility>

#include "common/bytes.h"

namespace sluice::hosttier {
namespace {

/// Pinned memory is asked for in pieces: one block of many gigabytes is hard to come by.
constexpr uint64_t kPieceBytes = 64 * kMiB;

}  // namespace

HostTier::HostTier(gpu::Device* device, uint64_t unit_bytes, uint64_t capacity_bytes)
    : device_(device), unit_bytes_(unit_bytes), capacity_bytes_(capacity_bytes) {}

HostTier::~HostTier() {
  while (!copies_.empty()) Forget(copies_.begin()->first);
}

Status HostTier::Evict(JobId job, const Extents& extents) {
  if (copies_.contains(job)) {
    return Status(StatusCode::kFailedPrecondition,
                  "job " + std::to_string(job) + " has something in host memory already");
  }
  Copy copy;
  copy.bytes = TotalUnits(extents) * unit_bytes_;
  if (!HasRoom(copy.bytes)) {
    return Status(StatusCode::kResourceExhausted,
                  FormatBytes(copy.bytes) + " do not fit: " + FormatBytes(used_bytes_) + " of " +
                      FormatBytes(capacity_bytes_) + " of host memory are in use");
  }
  if (Status s = Allocate(extents, &copy); !s.ok()) {
    Free(&copy);
    return s;
  }
  const Result<gpu::CopyTicket> begun = device_->BeginCopies(gpu::Direction::kToHost, copy.pieces);
  if (!begun.ok()) {
    Free(&copy);
    return begun.status();
  }
  copy.ticket = *begun;
  copy.place = Place::kLeaving;
  used_bytes_ += copy.bytes;
  ++under_way_;
  copies_.emplace(job, std::move(copy));
  return {};
}

Status HostTier::Allocate(const Extents& extents, Copy* copy) {
  for (const scheduler::Extent& extent : extents) {
    uint64_t offset = extent.offset * unit_bytes_;
    const uint64_t end = extent.end() * unit_bytes_;
    while (offset < end) {
      const uint64_t bytes = std::min(kPieceBytes, end - offset);
      Result<std::byte*> memory = device_->AllocateHost(bytes);
      if (!memory.ok()) return memory.status();
      copy->pieces.push_back({offset, *memory, bytes});
      offset += bytes;
    }
  }
  return {};
}

void HostTier::Free(Copy* copy) {
  for (const gpu::Piece& piece : copy->pieces) device_->FreeHost(piece.host);
  copy->pieces.clear();
}

Status HostTier::Restore(JobId job) {
  const auto found = copies_.find(job);
  if (found == copies_.end() || found->second.place != Place::kAway) {
    return Status(StatusCode::kFailedPrecondition,
                  "job " + std::to_string(job) + " has nothing in host memory to be copied back");
  }
  Copy& copy = found->second;
  const Result<gpu::CopyTicket> begun = device_->BeginCopies(gpu::Direction::kToPool, copy.pieces);
  if (!begun.ok()) return begun.status();
  copy.ticket = *begun;
  copy.place = Place::kReturning;
  ++under_way_;
  return {};
}

void HostTier::Forget(JobId job) {
  const auto found = copies_.find(job);
  if (found == copies_.end()) return;
  Copy& copy = found->second;
  if (copy.place != Place::kAway) {
    // However it ends: the memory is nobody's afterwards.
    static_cast<void>(device_->AwaitCopies(copy.ticket).ok());
    --under_way_;
  }
  used_bytes_ -= copy.bytes;
  Free(&copy);
  copies_.erase(found);
}

HostTier::Place HostTier::Where(JobId job) const {
  const auto found = copies_.find(job);
  return found == copies_.end() ? Place::kNone : found->second.place;
}

std::vector<HostTier::Finished> HostTier::Poll() {
  std::vector<Finished> finished;
  if (!busy()) return finished;
  for (auto& [job, copy] : copies_) {
    if (copy.place == Place::kAway) continue;
    const Result<bool> ended = device_->CopiesEnded(copy.ticket);
    if (ended.ok() && !*ended) continue;
    finished.push_back({job, copy.place, ended.ok() ? Status() : ended.status()});
    --under_way_;
    copy.place = Place::kAway;
  }
  for (const Finished& one : finished) {
    // A copy out that failed leaves nothing here, one back that failed leaves all of it.
    const bool gone = one.was == Place::kLeaving ? !one.status.ok() : one.status.ok();
    if (gone) Forget(one.job);
  }
  return finished;
}

}  // namespace sluice::hosttier
