// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "simgpu/streams/channel.h"

namespace sluice::simgpu {

/// One launch of a graph as the executor gets it: operations and what each has to wait for, in one
/// piece of the staging area. Laid out as header, steps, links, data.
struct ProgramHeader {
  uint32_t steps;
  uint32_t links;
};
struct ProgramStep {
  Command command;
  uint32_t first_link;  // links[first_link .. + link_count): the steps that wait for this one
  uint32_t link_count;
  uint32_t missing;  // how many steps this one waits for
  uint32_t reserved;
};

/// Collects the steps of a program in the driver.
class ProgramBuilder {
 public:
  /// A step behind `after`, which are earlier steps. Returns its index.
  uint32_t Add(const Command& command, std::span<const uint32_t> after);
  /// Data that goes with the program, or room for it. Returns where it is in the data part.
  uint64_t AddData(std::span<const unsigned char> contents);
  uint64_t AddRoom(uint64_t bytes);
  Command& command(uint32_t step) { return steps_[step]; }

  /// The operand of the step (arguments of a kernel, source or target of a copy) is the data at
  /// `data`; it becomes a staging offset when the program is written.
  void UseData(uint32_t step, uint64_t data) { data_of_.push_back({step, data}); }

  size_t size() const { return steps_.size(); }
  uint64_t bytes() const;
  /// Where a piece of data is, from the start of the program.
  uint64_t DataOffset(uint64_t data) const { return DataStart() + data; }
  /// Writes all of it to `memory`, which is at `offset` of the staging area.
  void Write(unsigned char* memory, uint64_t offset) const;

 private:
  struct Operand {
    uint32_t step;
    uint64_t data;
  };
  uint64_t DataStart() const;

  std::vector<Command> steps_;
  std::vector<std::vector<uint32_t>> after_;
  std::vector<Operand> data_of_;
  std::vector<std::pair<uint64_t, std::vector<unsigned char>>> data_;
  uint64_t data_bytes_ = 0;
  uint32_t links_ = 0;
};

/// A program under way, in the executor: which steps may start.
class ProgramRun {
 public:
  /// `memory` must stay as it is until the run is over.
  ProgramRun(const unsigned char* memory, uint64_t bytes);

  /// The steps that wait for no other, in the order in which they were added.
  const std::vector<uint32_t>& ready() const { return ready_; }
  const Command& step(uint32_t index) const { return steps_[index].command; }
  void Finish(uint32_t index);
  bool over() const { return finished_ == count_; }

 private:
  const ProgramStep* steps_ = nullptr;
  const uint32_t* links_ = nullptr;
  uint32_t count_ = 0;
  uint32_t finished_ = 0;
  std::vector<uint32_t> missing_;
  std::vector<uint32_t> ready_;
};

}  // namespace sluice::simgpu
