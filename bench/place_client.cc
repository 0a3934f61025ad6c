// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "bench/place_client.h"

#include <cstdio>
#include <cstdlib>
#include <memory>

#include "intercept/blocks/arena.h"
#include "scheduler/place/offline/changes.h"

namespace sluice::bench {
namespace {

constexpr uint64_t kGranule = 512;
constexpr uint64_t kPool = uint64_t{64} << 30;

}  // namespace

scheduler::Offsets PlaceAsClient(std::span<const scheduler::Buffer> buffers, uint64_t unit_bytes,
                                 bool tightest) {
  const auto must = [](bool done) {
    if (done) return;
    std::fprintf(stderr, "a client has no room for these buffers\n");
    std::exit(1);
  };
  const auto arena = std::make_unique<Arena>();
  const auto marks = std::make_unique<protocol::MarkPage>();
  const auto units = static_cast<uint32_t>(kPool / unit_bytes);
  must(arena->Init(units, static_cast<uint32_t>(unit_bytes / kGranule)));
  must(arena->Grant({0, units}));
  arena->TakeTightest(tightest);
  scheduler::Offsets offsets(buffers.size());
  for (const scheduler::Change& change : scheduler::ChangesOf(buffers)) {
    uint64_t& offset = offsets[change.buffer];
    if (!change.begins) {
      arena->FreeOnStream(arena->FindLive(static_cast<uint32_t>(offset / kGranule)), 0, 1);
      continue;
    }
    const uint64_t granules = (buffers[change.buffer].size + kGranule - 1) / kGranule;
    const uint32_t id = arena->Allocate(static_cast<uint32_t>(granules), 0, *marks);
    must(id != kNoBlock);
    offset = uint64_t{arena->block(id).start} * kGranule;
  }
  arena->FreeMemory();
  return offsets;
}

}  // namespace sluice::bench
