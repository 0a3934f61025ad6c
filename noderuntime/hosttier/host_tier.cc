// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/hosttier/host_tier.h"

#include <algorithm>
#include <string>
#include <utility>

namespace sluice::hosttier {
namespace {

/// A job leaves part of its last piece unused; with 64 pieces or more that is little of the whole.
uint64_t PieceBytes(uint64_t unit_bytes, uint64_t capacity_bytes) {
  const uint64_t bytes = std::min(HostTier::kMaxPieceBytes, capacity_bytes / 64);
  return std::max(unit_bytes, bytes / unit_bytes * unit_bytes);
}

std::string Name(JobId job) { return "job " + std::to_string(job); }

/// Sorted, not empty and apart: a unit that stood twice would be counted and copied twice.
bool AreGood(const Extents& extents) {
  uint64_t end = 0;
  for (const scheduler::Extent& extent : extents) {
    if (extent.length == 0 || extent.offset < end) return false;
    end = uint64_t{extent.offset} + extent.length;
  }
  return !extents.empty();
}

}  // namespace

HostTier::HostTier(gpu::Device* device, uint64_t unit_bytes, uint64_t capacity_bytes)
    : device_(device),
      unit_bytes_(unit_bytes),
      pieces_(device, capacity_bytes, PieceBytes(unit_bytes, capacity_bytes)) {}

HostTier::~HostTier() {
  while (!copies_.empty()) Forget(copies_.begin()->first);
}

/// The extents one behind the other over the pieces, cut where a piece ends.
std::vector<gpu::CopySpan> HostTier::Spans(const Copy& copy) const {
  std::vector<gpu::CopySpan> spans;
  const uint64_t piece_bytes = pieces_.piece_bytes();
  uint64_t at = 0;
  for (const scheduler::Extent& extent : copy.extents) {
    uint64_t offset = extent.offset * unit_bytes_;
    uint64_t left = extent.length * unit_bytes_;
    while (left > 0) {
      const uint64_t within = at % piece_bytes;
      const uint64_t bytes = std::min(left, piece_bytes - within);
      spans.push_back({offset, copy.pieces[at / piece_bytes] + within, bytes});
      at += bytes;
      offset += bytes;
      left -= bytes;
    }
  }
  return spans;
}

Status HostTier::Start(Place place, Copy* copy) {
  const gpu::CopyDirection direction =
      place == Place::kLeaving ? gpu::CopyDirection::kToHost : gpu::CopyDirection::kToPool;
  const Result<gpu::CopyTicket> ticket = device_->StartCopies(direction, Spans(*copy));
  if (!ticket.ok()) return ticket.status();
  copy->ticket = *ticket;
  copy->place = place;
  ++under_way_;
  moved_ = true;
  return {};
}

Status HostTier::Evict(JobId job, const Extents& extents) {
  if (!AreGood(extents)) {
    return Status(StatusCode::kInvalidArgument,
                  Name(job) + ": extents to evict must be sorted, apart and not empty");
  }
  if (copies_.contains(job)) {
    return Status(StatusCode::kFailedPrecondition, Name(job) + " is in host memory already");
  }
  Result<std::vector<std::byte*>> pieces = pieces_.Take(TotalUnits(extents) * unit_bytes_);
  if (!pieces.ok()) return pieces.status().Annotate(Name(job));
  const auto copy = copies_.emplace(job, Copy{}).first;
  copy->second.extents = extents;
  copy->second.pieces = std::move(*pieces);
  const Status started = Start(Place::kLeaving, &copy->second);
  if (!started.ok()) Drop(copy);
  return started.ok() ? started : started.Annotate(Name(job));
}

Status HostTier::Restore(JobId job) {
  const auto copy = copies_.find(job);
  if (copy == copies_.end()) {
    return Status(StatusCode::kNotFound, "nothing of " + Name(job) + " is in host memory");
  }
  if (copy->second.place != Place::kAway) {
    return Status(StatusCode::kFailedPrecondition, "a copy of " + Name(job) + " is under way");
  }
  const Status started = Start(Place::kReturning, &copy->second);
  return started.ok() ? started : started.Annotate(Name(job));
}

void HostTier::Forget(JobId job) {
  back_.erase(job);
  const auto copy = copies_.find(job);
  if (copy == copies_.end()) return;
  if (copy->second.place != Place::kAway) {
    // However it ended: the GPU touches neither side any more, and nobody needs the bytes.
    (void)device_->WaitForCopies(copy->second.ticket).ok();
    --under_way_;
  }
  Drop(copy);
}

HostTier::Copies::iterator HostTier::Drop(Copies::iterator copy) {
  moved_ = true;
  pieces_.GiveBack(copy->second.pieces);
  return copies_.erase(copy);
}

HostTier::Place HostTier::Where(JobId job) const {
  const auto copy = copies_.find(job);
  return copy == copies_.end() ? Place::kNone : copy->second.place;
}

Extents HostTier::Copied(JobId job) const {
  if (const auto copy = copies_.find(job); copy != copies_.end()) return copy->second.extents;
  const auto came = back_.find(job);
  return came == back_.end() ? Extents() : came->second;
}

std::vector<HostTier::Finished> HostTier::Poll() {
  std::vector<Finished> finished;
  back_.clear();
  for (auto it = copies_.begin(); it != copies_.end();) {
    Copy& copy = it->second;
    if (copy.place == Place::kAway) {
      ++it;
      continue;
    }
    const Result<bool> ended = device_->CopiesEnded(copy.ticket);
    if (ended.ok() && !*ended) {
      ++it;
      continue;
    }
    --under_way_;
    moved_ = true;
    finished.push_back(
        {it->first, copy.place, ended.ok() ? Status() : ended.status().Annotate(Name(it->first))});
    // The bytes are here after a good copy out and after a failed copy back, and only then.
    if ((copy.place == Place::kLeaving) == ended.ok()) {
      copy.place = Place::kAway;
      ++it;
    } else {
      if (ended.ok()) back_[it->first] = std::move(copy.extents);
      it = Drop(it);
    }
  }
  return finished;
}

std::optional<uint64_t> HostTier::frees_at_ns() const {
  // While a copy is under way its end is looked for, and that is a move.
  if (!pieces_.keeps_spare() || busy()) return std::nullopt;
  return moved_ ? 0 : last_move_ns_ + kKeptNs;
}

void HostTier::FreeWhatIsKept(uint64_t now_ns) {
  if (moved_) {
    moved_ = false;
    last_move_ns_ = now_ns;
  }
  const std::optional<uint64_t> at = frees_at_ns();
  if (at.has_value() && now_ns >= *at) pieces_.FreeSpare();
}

}  // namespace sluice::hosttier
