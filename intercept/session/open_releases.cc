// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "intercept/session/open_releases.h"

namespace sluice {

bool OpenReleases::Init(uint32_t units) {
  last_ = 0;
  for (Entry& entry : entry_) entry = {};
  return release_of_.Reserve(units);
}

void OpenReleases::FreeMemory() { release_of_.Free(); }

bool OpenReleases::Reached(const Entry& entry, const protocol::MarkPage& marks) {
  for (uint32_t i = 0; i < entry.terms; ++i) {
    const protocol::FenceTerm& term = entry.fence[i];
    const uint64_t mark = marks.mark[term.slot].load(std::memory_order_acquire);
    if (!protocol::MarkReached(mark, term.value)) return false;
  }
  return true;
}

bool OpenReleases::HasRoom(const protocol::MarkPage& marks) const {
  return Reached(entry_[(last_ + 1) % kMost], marks);
}

void OpenReleases::Add(const UnitRelease& release) {
  uint64_t number = 0;
  if (release.terms > 0) {
    number = ++last_;
    Entry& entry = entry_[number % kMost];
    entry.number = number;
    entry.terms = release.terms;
    for (uint32_t i = 0; i < release.terms; ++i) entry.fence[i] = release.fence[i];
  }
  for (uint32_t i = 0; i < release.extents; ++i) {
    const protocol::Extent& extent = release.extent[i];
    for (uint32_t unit = extent.offset; unit < extent.offset + extent.length; ++unit) {
      release_of_[unit] = number;
    }
  }
}

bool OpenReleases::IsOpen(uint32_t unit, const protocol::MarkPage& marks) const {
  const uint64_t number = release_of_[unit];
  if (number == 0) return false;
  const Entry& entry = entry_[number % kMost];
  return entry.number == number && !Reached(entry, marks);
}

uint32_t OpenReleases::Fence(const protocol::MarkPage& marks, protocol::FenceTerm* terms) const {
  uint32_t count = 0;
  for (const Entry& entry : entry_) {
    if (entry.number == 0 || Reached(entry, marks)) continue;
    for (uint32_t i = 0; i < entry.terms; ++i) {
      uint32_t at = 0;
      while (at < count && terms[at].slot != entry.fence[i].slot) ++at;
      if (at == count) {
        terms[count++] = entry.fence[i];
      } else if (protocol::MarkReached(entry.fence[i].value, terms[at].value)) {
        terms[at].value = entry.fence[i].value;
      }
    }
  }
  return count;
}

}  // namespace sluice
