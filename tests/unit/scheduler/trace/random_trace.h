// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "scheduler/trace/trace.h"

namespace sluice::scheduler::trace {

/// Makes valid traces that differ in everything the format leaves open.
class RandomTrace {
 public:
  explicit RandomTrace(uint32_t seed) : random_(seed) {}

  Trace Make() {
    Trace trace;
    for (size_t i = Below(4); i > 0; --i) {
      trace.header.push_back({"key" + std::to_string(i), Text(Below(20), true)});
    }
    const size_t transient = Below(30);
    std::vector<BlockId> live;
    for (const BlockKind kind :
         {BlockKind::kPersistent, BlockKind::kInput, BlockKind::kTransient}) {
      for (size_t i = kind == BlockKind::kTransient ? transient : Below(5); i > 0; --i) {
        if (kind != BlockKind::kTransient) {
          live.push_back(static_cast<BlockId>(trace.blocks.size()));
        }
        trace.blocks.push_back({kind, RandomLinear()});
      }
    }
    const size_t lasting = live.size();
    size_t next = lasting;
    while (next < trace.blocks.size() || live.size() > lasting) {
      switch (Below(3)) {
        case 0:
          if (next == trace.blocks.size()) break;
          live.push_back(static_cast<BlockId>(next));
          trace.events.push_back({EventKind::kAlloc, static_cast<uint32_t>(next++)});
          break;
        case 1:
          if (live.size() == lasting) break;
          std::swap(live[lasting + Below(live.size() - lasting)], live.back());
          trace.events.push_back({EventKind::kFree, live.back()});
          live.pop_back();
          break;
        default:
          trace.events.push_back(
              {EventKind::kOperator, static_cast<uint32_t>(trace.operators.size())});
          trace.operators.push_back({Text(1 + Below(12), false), static_cast<Phase>(Below(3)),
                                     RandomLinear(), RandomLinear(), Some(live), Some(live)});
      }
    }
    return trace;
  }

 private:
  size_t Below(size_t bound) { return random_() % bound; }

  /// Of every length in digits, the largest one too.
  uint64_t Number() { return (kMaxNumber >> Below(54)) - (Below(2) == 0 ? 0 : Below(2)); }

  Linear RandomLinear() {
    const uint64_t fixed = Number();
    return {fixed, Number()};
  }

  std::string Text(size_t length, bool blanks) {
    std::string text;
    while (text.size() < length) {
      text += static_cast<char>((blanks ? ' ' : '!') + Below(blanks ? 95 : 94));
    }
    return text;
  }

  std::vector<BlockId> Some(std::vector<BlockId> blocks) {
    std::shuffle(blocks.begin(), blocks.end(), random_);
    blocks.resize(Below(blocks.size() + 1));
    return blocks;
  }

  std::mt19937 random_;
};

}  // namespace sluice::scheduler::trace
