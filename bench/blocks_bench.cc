// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <benchmark/benchmark.h>
#include <mimalloc.h>

#include <cstdlib>
#include <memory>
#include <vector>

#include "bench/sequence.h"
#include "intercept/blocks/arena.h"

/// What a block costs in the client against what a small object costs in a fast allocator: the same
/// sequence of sizes, divided by 1024 there so that both manage as many objects in cache-sized
/// books.
namespace sluice::bench {
namespace {

constexpr uint64_t kUnitBytes = 8u << 20;
constexpr uint32_t kUnitGranules = kUnitBytes / kGranuleBytes;
constexpr uint32_t kPoolUnits = 1024;  // 8 GiB
constexpr uint32_t kSlot = 1;
constexpr uint64_t kScale = 1024;

// The GPU is always done: what is measured is the search, not waiting.
struct Books {
  Books() {
    if (!arena.Init(kPoolUnits, kUnitGranules) || !arena.Grant({0, kPoolUnits})) abort();
  }
  Arena arena;
  protocol::MarkPage marks{};
};

void RunIteration(const BlockSequence& sequence, Books& books, std::vector<uint32_t>& address,
                  benchmark::State& state) {
  Arena& arena = books.arena;
  for (const BlockStep& step : sequence.steps) {
    if (step.alloc) {
      const auto granules = static_cast<uint32_t>((step.bytes + kGranuleBytes - 1) / kGranuleBytes);
      const uint32_t id = arena.Allocate(granules, kSlot, books.marks);
      if (id == kNoBlock) {
        state.SkipWithError("the pool is too small for the sequence");
        return;
      }
      address[step.block] = arena.block(id).start;
    } else {
      // The program frees by address.
      const uint32_t id = arena.FindLive(address[step.block]);
      arena.FreeOnStream(id, kSlot, 1);
    }
  }
}

void BlocksSluice(benchmark::State& state, const BlockSequence& sequence) {
  const auto books = std::make_unique<Books>();
  std::vector<uint32_t> address(sequence.blocks);
  RunIteration(sequence, *books, address, state);
  for (auto _ : state) RunIteration(sequence, *books, address, state);
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations() * sequence.blocks));
}

void BlocksMimalloc(benchmark::State& state, const BlockSequence& sequence) {
  std::vector<void*> address(sequence.blocks);
  for (auto _ : state) {
    for (const BlockStep& step : sequence.steps) {
      if (step.alloc) {
        address[step.block] = mi_malloc(step.bytes / kScale + 1);
        benchmark::DoNotOptimize(address[step.block]);
      } else {
        mi_free(address[step.block]);
      }
    }
  }
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations() * sequence.blocks));
}

const int kRegistered = [] {
  for (const char* name : {"resnet50", "bert-base"}) {
    const BlockSequence sequence = ReadSequence(name);
    benchmark::RegisterBenchmark((std::string("blocks/sluice/") + name).c_str(), BlocksSluice,
                                 sequence);
    benchmark::RegisterBenchmark((std::string("blocks/mimalloc/") + name).c_str(), BlocksMimalloc,
                                 sequence);
  }
  return 0;
}();

}  // namespace
}  // namespace sluice::bench
