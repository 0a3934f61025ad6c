// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/ledger/pool_map.h"

#include <algorithm>
#include <array>
#include <utility>

namespace sluice::scheduler {

namespace {

/// Units of two releases stay apart while they are unfenced: each waits for its own fence.
bool Alike(const Span& a, const Span& b) {
  return a.state == b.state && a.holder == b.holder && a.release == b.release;
}

/// The first that ends behind `offset`: one of two lists is often short.
size_t FirstBehind(const Extents& extents, Units offset) {
  const auto first =
      std::partition_point(extents.begin(), extents.end(),
                           [offset](const Extent& extent) { return extent.end() <= offset; });
  return static_cast<size_t>(first - extents.begin());
}

void Append(Extents* extents, Extent extent) {
  if (extent.length == 0) return;
  if (!extents->empty() && extents->back().end() == extent.offset) {
    extents->back().length += extent.length;
  } else {
    extents->push_back(extent);
  }
}

}  // namespace

const char* PhaseName(Phase phase) {
  switch (phase) {
    case Phase::kWaiting:
      return "waiting";
    case Phase::kUnprofiled:
      return "unprofiled";
    case Phase::kParked:
      return "parked";
    case Phase::kRunning:
      return "running";
    case Phase::kEvicted:
      return "evicted";
    case Phase::kDying:
      return "dying";
  }
  return "unknown";
}

const char* UnitStateName(UnitState state) {
  switch (state) {
    case UnitState::kFree:
      return "free";
    case UnitState::kLeased:
      return "leased";
    case UnitState::kUnfenced:
      return "unfenced";
    case UnitState::kSpare:
      return "spare";
    case UnitState::kQuarantined:
      return "quarantined";
  }
  return "unknown";
}

PoolMap::PoolMap(Units units) : units_(units), free_(units) {
  if (units == 0) return;
  spans_.push_back({0, units});
  free_runs_.push_back({0, units});
}

bool PoolMap::All(const Extent& extent, UnitState state, JobId holder) const {
  // In 64 bits: the sum of a hostile offset and length wraps.
  if (extent.length == 0 || uint64_t{extent.offset} + extent.length > units_) return false;
  for (auto span = At(extent.offset); span != spans_.end() && span->offset < extent.end(); ++span) {
    if (span->state != state || span->holder != holder) return false;
  }
  return true;
}

std::vector<Span>::const_iterator PoolMap::At(Units offset) const {
  return std::partition_point(spans_.begin(), spans_.end(),
                              [offset](const Span& span) { return span.end() <= offset; });
}

void PoolMap::Set(const Extent& extent, UnitState state, JobId holder, ReleaseId release) {
  if (extent.length == 0) return;
  free_ -= Count(extent, kNoJob);
  if (state == UnitState::kFree) {
    free_ += extent.length;
    AddFree(extent);
  } else {
    RemoveFree(extent);
  }
  // What is cut, and the neighbours, with which the rest may merge.
  const auto head = At(extent.offset);
  const auto tail = At(extent.end() - 1);
  const auto first = head == spans_.begin() ? head : head - 1;
  const auto last = tail + 1 == spans_.end() ? tail : tail + 1;
  std::array<Span, 5> fresh;
  size_t count = 0;
  const auto push = [&](Span span) {
    if (span.length == 0) return;
    if (count > 0 && Alike(fresh[count - 1], span)) {
      fresh[count - 1].length += span.length;
    } else {
      fresh[count++] = span;
    }
  };
  if (first != head) push(*first);
  Span left = *head;
  left.length = extent.offset - left.offset;
  push(left);
  push({extent.offset, extent.length, state, holder, release});
  Span right = *tail;
  right.length = right.end() - extent.end();
  right.offset = extent.end();
  push(right);
  if (last != tail) push(*last);

  const auto replaced = static_cast<size_t>(last - first) + 1;
  const size_t kept = std::min(count, replaced);
  const auto from = spans_.begin() + (first - spans_.cbegin());
  const auto at = spans_.erase(std::copy_n(fresh.begin(), kept, from),
                               from + static_cast<std::ptrdiff_t>(replaced));
  if (count > kept) {
    spans_.insert(at, fresh.begin() + static_cast<std::ptrdiff_t>(kept),
                  fresh.begin() + static_cast<std::ptrdiff_t>(count));
  }
}

void PoolMap::Set(const Extents& extents, UnitState state, JobId holder, ReleaseId release) {
  constexpr size_t kFew = 4;  // each moves what lies behind it
  if (extents.size() <= kFew) {
    for (const Extent& extent : extents) Set(extent, state, holder, release);
    return;
  }
  std::vector<Span> fresh;
  fresh.reserve(spans_.size() + 2 * extents.size());
  const auto push = [&fresh](const Span& span) {
    if (span.length == 0) return;
    if (!fresh.empty() && Alike(fresh.back(), span)) {
      fresh.back().length += span.length;
    } else {
      fresh.push_back(span);
    }
  };
  size_t next = 0;
  for (Span rest : spans_) {
    const Units end = rest.end();
    while (next < extents.size() && extents[next].offset < end) {
      const Units from = std::max(extents[next].offset, rest.offset);
      const Units to = std::min(extents[next].end(), end);
      push({rest.offset, from - rest.offset, rest.state, rest.holder, rest.release});
      push({from, to - from, state, holder, release});
      rest.offset = to;
      rest.length = end - to;
      if (extents[next].end() > end) break;  // it goes on in the next span
      ++next;
    }
    push(rest);
  }
  spans_ = std::move(fresh);
  free_ = 0;
  free_runs_.clear();
  for (const Span& span : spans_) {
    if (span.state != UnitState::kFree) continue;
    free_ += span.length;
    free_runs_.push_back({span.offset, span.length});
  }
}

void PoolMap::AddFree(const Extent& extent) {
  // All that touch it become one.
  const auto first =
      std::partition_point(free_runs_.begin(), free_runs_.end(),
                           [&](const Extent& run) { return run.end() < extent.offset; });
  const auto last = std::partition_point(
      first, free_runs_.end(), [&](const Extent& run) { return run.offset <= extent.end(); });
  if (first == last) {
    free_runs_.insert(first, extent);
    return;
  }
  const Units end = std::max((last - 1)->end(), extent.end());
  first->offset = std::min(first->offset, extent.offset);
  first->length = end - first->offset;
  free_runs_.erase(first + 1, last);
}

void PoolMap::RemoveFree(const Extent& extent) {
  const auto first =
      std::partition_point(free_runs_.begin(), free_runs_.end(),
                           [&](const Extent& run) { return run.end() <= extent.offset; });
  const auto last = std::partition_point(
      first, free_runs_.end(), [&](const Extent& run) { return run.offset < extent.end(); });
  if (first == last) return;
  Extents rest;
  Append(&rest, {first->offset, extent.offset - std::min(first->offset, extent.offset)});
  const Units end = std::max((last - 1)->end(), extent.end());
  Append(&rest, {extent.end(), end - extent.end()});
  const auto at = free_runs_.erase(first, last);
  free_runs_.insert(at, rest.begin(), rest.end());
}

Extents PoolMap::Held(JobId holder, UnitState state) const {
  Extents result;
  for (const Span& span : spans_) {
    if (span.holder == holder && span.state == state) Append(&result, {span.offset, span.length});
  }
  return result;
}

Extents PoolMap::Held(JobId holder) const {
  Extents result;
  for (const Span& span : spans_) {
    if (span.holder == holder) Append(&result, {span.offset, span.length});
  }
  return result;
}

size_t PoolMap::Pieces(JobId holder) const {
  const auto held = [holder](const Span& span) { return span.holder == holder; };
  return static_cast<size_t>(std::count_if(spans_.begin(), spans_.end(), held));
}

Units PoolMap::Count(JobId holder) const {
  Units total = 0;
  for (const Span& span : spans_) total += span.holder == holder ? span.length : 0;
  return total;
}

Units PoolMap::Count(const Extent& extent, JobId holder) const {
  Units count = 0;
  for (auto span = At(extent.offset); span != spans_.end() && span->offset < extent.end(); ++span) {
    if (span->holder != holder) continue;
    count += std::min(span->end(), extent.end()) - std::max(span->offset, extent.offset);
  }
  return count;
}

Units PoolMap::Count(JobId holder, UnitState state) const {
  Units total = 0;
  for (const Span& span : spans_) {
    total += span.holder == holder && span.state == state ? span.length : 0;
  }
  return total;
}

Extents Merge(Extents extents) {
  const auto by_offset = [](const Extent& a, const Extent& b) { return a.offset < b.offset; };
  // Mostly two sorted lists, one behind the other.
  const auto second = std::is_sorted_until(extents.begin(), extents.end(), by_offset);
  if (!std::is_sorted(second, extents.end(), by_offset)) {
    std::sort(second, extents.end(), by_offset);
  }
  std::inplace_merge(extents.begin(), second, extents.end(), by_offset);
  size_t merged = 0;  // in place: what is written lies before what is read
  for (const Extent extent : extents) {
    if (extent.length == 0) continue;
    if (merged > 0 && extents[merged - 1].end() >= extent.offset) {
      Extent& last = extents[merged - 1];
      last.length = std::max(last.end(), extent.end()) - last.offset;
    } else {
      extents[merged++] = extent;
    }
  }
  extents.resize(merged);
  return extents;
}

Extents Union(const Extents& a, const Extents& b) {
  Extents all;
  all.reserve(a.size() + b.size());
  all.insert(all.end(), a.begin(), a.end());
  all.insert(all.end(), b.begin(), b.end());
  return Merge(std::move(all));
}

Extents Subtract(const Extents& a, const Extents& b) {
  Extents result;
  size_t next = a.empty() ? 0 : FirstBehind(b, a.front().offset);
  for (const Extent& extent : a) {
    Units from = extent.offset;
    while (next < b.size() && b[next].end() <= from) ++next;
    for (size_t i = next; i < b.size() && b[i].offset < extent.end(); ++i) {
      if (b[i].offset > from) Append(&result, {from, b[i].offset - from});
      from = std::max(from, b[i].end());
    }
    if (from < extent.end()) Append(&result, {from, extent.end() - from});
  }
  return result;
}

Extents Intersect(const Extents& a, const Extents& b) {
  Extents result;
  if (a.empty() || b.empty()) return result;
  size_t i = FirstBehind(a, b.front().offset);
  size_t j = FirstBehind(b, a.front().offset);
  while (i < a.size() && j < b.size()) {
    const Units from = std::max(a[i].offset, b[j].offset);
    const Units to = std::min(a[i].end(), b[j].end());
    if (from < to) Append(&result, {from, to - from});
    if (a[i].end() < b[j].end()) {
      ++i;
    } else {
      ++j;
    }
  }
  return result;
}

}  // namespace sluice::scheduler
