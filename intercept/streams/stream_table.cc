// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "intercept/streams/stream_table.h"

namespace sluice {

void StreamTable::Clear() {
  for (StreamSlot& slot : slots_) slot = {};
  for (uint64_t& value : queued_) value = 0;
  mark_bytes_ = kMarkBytes;
  used_ = mixed_marks_ = 0;
  last_user_ = kNobody;
}

uint32_t StreamTable::Find(const StreamName& name) const {
  for (uint32_t i = 0; i < used_; ++i) {
    if (slots_[i].active && Still(i, name) == i) return i;
  }
  return kNoSlot;
}

uint32_t StreamTable::OfHandle(CUstream handle) const {
  for (uint32_t i = 0; i < used_; ++i) {
    if (slots_[i].active && slots_[i].handle == handle) return i;
  }
  return kNoSlot;
}

void StreamTable::Assign(uint32_t slot, uint64_t id, CUstream handle, CUcontext context,
                         uint64_t thread) {
  // A handle that comes again: the stream that had it is gone, seen or not, and not to be marked.
  const bool own =
      handle != nullptr && handle != CU_STREAM_LEGACY && handle != CU_STREAM_PER_THREAD;
  for (uint32_t last; own && (last = OfHandle(handle)) != kNoSlot;) Retire(last);
  StreamSlot& entry = slots_[slot];
  const uint64_t issued = entry.issued;
  entry = {};
  entry.active = true;
  entry.id = id;
  entry.handle = handle;
  entry.context = context;
  entry.thread = thread;
  entry.issued = issued;
  if (used_ <= slot) used_ = slot + 1;
}

uint64_t StreamTable::Issue(uint32_t slot) {
  StreamSlot& entry = slots_[slot];
  entry.dirty = false;
  entry.marking = true;
  entry.bytes = entry.launch_ns = 0;
  entry.launches = 0;
  return ++entry.issued;
}

}  // namespace sluice
