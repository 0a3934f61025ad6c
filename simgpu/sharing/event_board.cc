// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "simgpu/sharing/event_board.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string>

namespace sluice::simgpu {

std::unique_ptr<EventBoard> EventBoard::Open(const GpuState& gpu) {
  const std::string path = gpu.dir() + "/events";
  const UniqueFd fd(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  constexpr size_t kBytes = sizeof(Entry) * kEvents;
  // Whoever comes second finds the size right already; new bytes are zero.
  if (!fd.valid() || ftruncate(fd.get(), static_cast<off_t>(kBytes)) != 0) return nullptr;
  void* map = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (map == MAP_FAILED) return nullptr;
  return std::unique_ptr<EventBoard>(new EventBoard(gpu.page(), static_cast<Entry*>(map)));
}

EventBoard::~EventBoard() { munmap(entries_, sizeof(Entry) * kEvents); }

std::optional<EventBoard::Name> EventBoard::New() {
  const ProcessId self = SelfProcess();
  const StateLock lock(page_);
  for (uint32_t index = 0; index < kEvents; ++index) {
    Entry& entry = entries_[index];
    const bool used = entry.generation.load() % 2 == 1;
    if (used && !ProcessGone(entry.owner)) continue;
    const uint64_t generation = entry.generation.load() + (used ? 2 : 1);
    entry.recorded.store(0);
    entry.completed.store(0);
    entry.owner = self;
    entry.generation.store(generation);
    return Name{index, generation};
  }
  return std::nullopt;
}

void EventBoard::Delete(const Name& name) {
  const StateLock lock(page_);
  Entry& entry = entries_[name.index];
  if (entry.generation.load() == name.generation) entry.generation.store(name.generation + 1);
}

bool EventBoard::Exists(const Name& name) const {
  return name.index < kEvents && name.generation % 2 == 1 &&
         entries_[name.index].generation.load() == name.generation;
}

uint64_t EventBoard::BeginRecord(uint32_t index, const ProcessId& client) {
  Entry& entry = entries_[index];
  entry.recorder_start.store(client.start);
  entry.recorder_space.store(client.space);
  entry.recorder_pid.store(client.pid);
  return entry.recorded.fetch_add(1) + 1;
}

uint64_t EventBoard::LastRecord(uint32_t index) const { return entries_[index].recorded.load(); }

void EventBoard::Complete(uint32_t index, uint64_t record) {
  if (index >= kEvents) return;
  std::atomic<uint64_t>& completed = entries_[index].completed;
  uint64_t now = completed.load();
  while (now < record && !completed.compare_exchange_weak(now, record)) {
  }
}

bool EventBoard::Reached(uint32_t index, uint64_t record) const {
  if (index >= kEvents) return true;
  const Entry& entry = entries_[index];
  if (entry.completed.load(std::memory_order_acquire) >= record) return true;
  return ProcessGone(
      {entry.recorder_pid.load(), entry.recorder_start.load(), entry.recorder_space.load()});
}

}  // namespace sluice::simgpu
