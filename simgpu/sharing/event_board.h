// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

#include "simgpu/sharing/gpu_state.h"

namespace sluice::simgpu {

/// The events that processes share (CU_EVENT_INTERPROCESS): a file of the GPU, made when the first
/// such event is. An event is as far as its last record: `completed` reaches `recorded`.
class EventBoard {
 public:
  static constexpr uint32_t kEvents = 4096;

  /// Null if the file cannot be made.
  static std::unique_ptr<EventBoard> Open(const GpuState& gpu);
  ~EventBoard();
  EventBoard(const EventBoard&) = delete;
  EventBoard& operator=(const EventBoard&) = delete;

  /// Names one event, of which there may be another in the same place later.
  struct Name {
    uint32_t index = 0;
    uint64_t generation = 0;
  };

  /// A new event of this process; those of processes that are gone make room.
  std::optional<Name> New();
  void Delete(const Name& name);
  bool Exists(const Name& name) const;

  /// The next record is issued by `client`; returns its number.
  uint64_t BeginRecord(uint32_t index, const ProcessId& client);
  uint64_t LastRecord(uint32_t index) const;
  void Complete(uint32_t index, uint64_t record);
  /// Whether the record is over. One whose process is gone will never be, and holds up nobody.
  bool Reached(uint32_t index, uint64_t record) const;

 private:
  struct Entry {
    std::atomic<uint64_t> generation;  // odd: in use
    std::atomic<uint64_t> recorded;
    std::atomic<uint64_t> completed;
    ProcessId owner;  // under the page's guard
    std::atomic<int32_t> recorder_pid;
    std::atomic<uint64_t> recorder_start;
    std::atomic<uint64_t> recorder_space;
  };
  EventBoard(StatePage* page, Entry* entries) : page_(page), entries_(entries) {}

  StatePage* page_;
  Entry* entries_;
};

}  // namespace sluice::simgpu
