// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "simgpu/graph/program.h"

#include <algorithm>
#include <cstring>

namespace sluice::simgpu {
namespace {

constexpr uint64_t kAlignment = 64;

uint64_t Up(uint64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace

uint32_t ProgramBuilder::Add(const Command& command, std::span<const uint32_t> after) {
  steps_.push_back(command);
  after_.emplace_back(after.begin(), after.end());
  links_ += static_cast<uint32_t>(after.size());
  return static_cast<uint32_t>(steps_.size() - 1);
}

uint64_t ProgramBuilder::AddData(std::span<const unsigned char> contents) {
  const uint64_t at = AddRoom(contents.size());
  data_.emplace_back(at, std::vector<unsigned char>(contents.begin(), contents.end()));
  return at;
}

uint64_t ProgramBuilder::AddRoom(uint64_t bytes) {
  const uint64_t at = data_bytes_;
  data_bytes_ += Up(bytes);
  return at;
}

uint64_t ProgramBuilder::DataStart() const {
  return Up(sizeof(ProgramHeader) + steps_.size() * sizeof(ProgramStep) +
            links_ * sizeof(uint32_t));
}

uint64_t ProgramBuilder::bytes() const { return DataStart() + data_bytes_; }

void ProgramBuilder::Write(unsigned char* memory, uint64_t offset) const {
  const ProgramHeader header{static_cast<uint32_t>(steps_.size()), links_};
  std::vector<ProgramStep> steps(steps_.size());
  for (size_t i = 0; i < steps.size(); ++i) {
    steps[i].command = steps_[i];
    steps[i].missing = static_cast<uint32_t>(after_[i].size());
    for (const uint32_t before : after_[i]) ++steps[before].link_count;
  }
  for (size_t i = 1; i < steps.size(); ++i) {
    steps[i].first_link = steps[i - 1].first_link + steps[i - 1].link_count;
  }
  std::vector<uint32_t> links(links_);
  std::vector<uint32_t> filled(steps.size());
  for (size_t i = 0; i < steps.size(); ++i) {
    for (const uint32_t before : after_[i]) {
      links[steps[before].first_link + filled[before]++] = static_cast<uint32_t>(i);
    }
  }
  for (const Operand& operand : data_of_) {
    Command& command = steps[operand.step].command;
    const uint64_t at = offset + DataOffset(operand.data);
    if (command.kind == CommandKind::kKernel) {
      command.kernel.staged_args = at;
    } else if ((command.flags & kSourceStaged) != 0) {
      command.copy.source = at;
    } else {
      command.copy.target = at;
    }
  }
  for (const auto& [at, contents] : data_) {
    if (!contents.empty()) memcpy(memory + DataOffset(at), contents.data(), contents.size());
  }
  memcpy(memory, &header, sizeof header);
  memory += sizeof header;
  if (!steps.empty()) memcpy(memory, steps.data(), steps.size() * sizeof(ProgramStep));
  memory += steps.size() * sizeof(ProgramStep);
  if (!links.empty()) memcpy(memory, links.data(), links.size() * sizeof(uint32_t));
}

ProgramRun::ProgramRun(const unsigned char* memory, uint64_t bytes) {
  ProgramHeader header{};
  if (memory == nullptr || bytes < sizeof header) return;
  memcpy(&header, memory, sizeof header);
  const uint64_t needed = sizeof header + uint64_t{header.steps} * sizeof(ProgramStep) +
                          uint64_t{header.links} * sizeof(uint32_t);
  if (needed > bytes) return;
  count_ = header.steps;
  steps_ = reinterpret_cast<const ProgramStep*>(memory + sizeof header);
  links_ = reinterpret_cast<const uint32_t*>(steps_ + count_);
  missing_.resize(count_);
  for (uint32_t i = 0; i < count_; ++i) {
    missing_[i] = steps_[i].missing;
    if (missing_[i] == 0) ready_.push_back(i);
  }
}

void ProgramRun::Finish(uint32_t index) {
  ++finished_;
  ready_.erase(std::find(ready_.begin(), ready_.end(), index));
  const ProgramStep& step = steps_[index];
  for (uint32_t i = 0; i < step.link_count; ++i) {
    const uint32_t next = links_[step.first_link + i];
    if (--missing_[next] > 0) continue;
    ready_.insert(std::lower_bound(ready_.begin(), ready_.end(), next), next);
  }
}

}  // namespace sluice::simgpu
