// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/simulate/paging.h"

#include <algorithm>
#include <cmath>

#include "scheduler/simulate/workload.h"

namespace sluice::scheduler::simulate {

namespace {

uint64_t RoundUp(uint64_t value, uint64_t to) { return (value + to - 1) / to * to; }

}  // namespace

PagingOptions PagingOptions::Of(const Machine& machine) {
  PagingOptions options;
  options.link_bytes_per_s = static_cast<double>(machine.copy_bytes_per_s);
  return options;
}

Paging::Paging(const PagingOptions& options, uint64_t memory_bytes,
               const std::vector<const Workload*>& jobs)
    : options_(options), jobs_(jobs), pages_(memory_bytes / options.page_bytes), free_(pages_) {
  for (const Workload* job : jobs) {
    first_.push_back(buffers_.size());
    for (const uint64_t bytes : job->touches.buffer_bytes) {
      Buffer buffer;
      buffer.pages = RoundUp(bytes, options.page_bytes) / options.page_bytes;
      buffer.there = buffer.dirty = buffer.pages;
      buffers_.push_back(buffer);
    }
  }
  ends_ = buffers_.size();
  buffers_.emplace_back();
  buffers_[ends_].older = buffers_[ends_].newer = ends_;
}

double Paging::Touch(size_t job, size_t kernel, double now_ns) {
  spent_ns_ = 0;
  for (const simulate::Touch& touch : jobs_[job]->touches.Of(kernel)) {
    for (uint32_t i = 0; i < touch.buffers; ++i) {
      Bring(first_[job] + touch.buffer + i, touch.writes);
    }
  }
  if (spent_ns_ == 0) return 0;
  totals_.busy_ns += spent_ns_;
  free_at_ns_ = std::max(free_at_ns_, now_ns) + spent_ns_;
  return free_at_ns_ - now_ns;
}

void Paging::Ended(size_t job, size_t kernel) {
  for (const uint32_t buffer : jobs_[job]->touches.FreedAfter(kernel)) Free(first_[job] + buffer);
}

void Paging::Bring(size_t id, bool writes) {
  Buffer& buffer = buffers_[id];
  const bool only_here = !buffer.touched;
  if (buffer.there > 0) {
    const uint64_t missing = MakeRoomFor(id);
    // A buffer larger than the memory pushes its own first pages out again.
    const uint64_t through = missing - std::min(missing, free_);
    if (!only_here) {
      const auto bytes = static_cast<double>(missing * options_.page_bytes);
      const double groups =
          std::ceil(bytes / static_cast<double>(options_.block_bytes) * options_.groups_per_block);
      totals_.in_bytes += missing * options_.page_bytes;
      totals_.fault_groups += static_cast<uint64_t>(groups);
      spent_ns_ += bytes / options_.link_bytes_per_s * 1e9 + groups * options_.fault_group_ns;
    }
    if (writes || only_here || options_.copies_clean) CopyOut(through);
    if (buffer.resident() > 0) Unlink(id);
    free_ -= missing - through;
    buffer.there = through;
    buffer.touched = true;
  } else {
    Unlink(id);
  }
  if (writes || only_here || options_.copies_clean) buffer.dirty = buffer.there;
  Append(id);
}

/// Returns how many pages have to come in. Where the buffer's own pages have been unused for the
/// longest time, its first missing page pushes out the first of them, and by the time the sweep
/// arrives there the page is gone, having pushed out the next: none of them survives.
uint64_t Paging::MakeRoomFor(size_t id) {
  const Buffer& buffer = buffers_[id];
  const uint64_t at_once = options_.block_bytes / options_.page_bytes;
  while (free_ < buffer.there && buffers_[ends_].newer != ends_) {
    const size_t oldest = buffers_[ends_].newer;
    const uint64_t resident = buffers_[oldest].resident();
    Evict(oldest,
          oldest == id ? resident : std::min(resident, RoundUp(buffer.there - free_, at_once)));
  }
  return buffer.there;
}

void Paging::Evict(size_t id, uint64_t pages) {
  Buffer& buffer = buffers_[id];
  const uint64_t end = buffer.there + pages;
  CopyOut(end - std::min(end, std::max(buffer.there, buffer.dirty)));
  buffer.there = end;
  buffer.dirty = std::max(buffer.dirty, end);
  free_ += pages;
  if (buffer.resident() == 0) Unlink(id);
}

void Paging::CopyOut(uint64_t pages) {
  const uint64_t bytes = pages * options_.page_bytes;
  totals_.out_bytes += bytes;
  spent_ns_ += static_cast<double>(bytes) / options_.link_bytes_per_s * 1e9;
}

void Paging::Free(size_t id) {
  Buffer& buffer = buffers_[id];
  free_ += buffer.resident();
  if (buffer.resident() > 0) Unlink(id);
  buffer.there = buffer.dirty = buffer.pages;
  buffer.touched = false;
}

void Paging::Unlink(size_t id) {
  const Buffer& buffer = buffers_[id];
  buffers_[buffer.older].newer = buffer.newer;
  buffers_[buffer.newer].older = buffer.older;
}

void Paging::Append(size_t id) {
  Buffer& buffer = buffers_[id];
  buffer.newer = ends_;
  buffer.older = buffers_[ends_].older;
  buffers_[buffer.older].newer = id;
  buffers_[ends_].older = id;
}

}  // namespace sluice::scheduler::simulate
