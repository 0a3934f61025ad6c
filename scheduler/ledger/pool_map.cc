// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/ledger/pool_map.h"

#include <algorithm>

namespace sluice::scheduler {

namespace {

/// Units of two releases stay apart while they are unfenced: each waits for its own fence.
bool Alike(const Span& a, const Span& b) {
  return a.state == b.state && a.holder == b.holder && a.release == b.release;
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

PoolMap::PoolMap(Units units) : units_(units) {
  if (units > 0) spans_.push_back({0, units});
}

bool PoolMap::All(const Extent& extent, UnitState state, JobId holder) const {
  // In 64 bits: the sum of a hostile offset and length wraps.
  if (extent.length == 0 || uint64_t{extent.offset} + extent.length > units_) return false;
  for (const Span& span : spans_) {
    if (span.end() <= extent.offset) continue;
    if (span.offset >= extent.end()) break;
    if (span.state != state || span.holder != holder) return false;
  }
  return true;
}

void PoolMap::Set(const Extent& extent, UnitState state, JobId holder, ReleaseId release) {
  // Rebuilt as a whole: there are tens of spans, and splitting in place has a case for each way in
  // which an extent can cut them.
  std::vector<Span> result;
  result.reserve(spans_.size() + 2);
  auto push = [&result](Span span) {
    if (span.length == 0) return;
    if (!result.empty() && Alike(result.back(), span)) {
      result.back().length += span.length;
    } else {
      result.push_back(span);
    }
  };
  const Span changed{extent.offset, extent.length, state, holder, release};
  bool done = false;
  for (const Span& span : spans_) {
    if (span.end() <= extent.offset || span.offset >= extent.end()) {
      if (!done && span.offset >= extent.end()) {
        push(changed);
        done = true;
      }
      push(span);
      continue;
    }
    if (span.offset < extent.offset) {
      Span left = span;
      left.length = extent.offset - span.offset;
      push(left);
    }
    if (!done) {
      push(changed);
      done = true;
    }
    if (span.end() > extent.end()) {
      Span right = span;
      right.offset = extent.end();
      right.length = span.end() - extent.end();
      push(right);
    }
  }
  if (!done) push(changed);
  spans_ = std::move(result);
}

Extents PoolMap::FreeRuns() const { return Held(kNoJob, UnitState::kFree); }

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

Units PoolMap::Count(UnitState state) const {
  Units total = 0;
  for (const Span& span : spans_) total += span.state == state ? span.length : 0;
  return total;
}

Units PoolMap::Count(JobId holder) const {
  Units total = 0;
  for (const Span& span : spans_) total += span.holder == holder ? span.length : 0;
  return total;
}

Units PoolMap::Count(const Extent& extent, JobId holder) const {
  Units count = 0;
  auto span = std::partition_point(spans_.begin(), spans_.end(),
                                   [&extent](const Span& s) { return s.end() <= extent.offset; });
  for (; span != spans_.end() && span->offset < extent.end(); ++span) {
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
  std::sort(extents.begin(), extents.end(),
            [](const Extent& a, const Extent& b) { return a.offset < b.offset; });
  Extents result;
  for (const Extent& extent : extents) {
    if (extent.length == 0) continue;
    if (!result.empty() && result.back().end() >= extent.offset) {
      result.back().length = std::max(result.back().end(), extent.end()) - result.back().offset;
    } else {
      result.push_back(extent);
    }
  }
  return result;
}

Extents Union(const Extents& a, const Extents& b) {
  Extents all = a;
  all.insert(all.end(), b.begin(), b.end());
  return Merge(std::move(all));
}

Extents Subtract(const Extents& a, const Extents& b) {
  Extents result;
  size_t next = 0;
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
  size_t i = 0;
  size_t j = 0;
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
