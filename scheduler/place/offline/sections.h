// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "scheduler/place/offline/buffers.h"

namespace sluice::scheduler {

/// Time cut into the sections that matter: those in which a set of buffers lives that is not part
/// of another section's. Two buffers meet in time exactly if they share a section. (The maximal
/// cliques of an interval graph, in their order.)
struct Sections {
  struct Range {
    uint32_t first;
    uint32_t last;  // exclusive
  };
  explicit Sections(std::span<const Buffer> buffers);

  std::vector<Range> of;       // of each buffer; never empty
  std::vector<uint64_t> load;  // of each section: bytes
  std::vector<uint64_t> time;  // of each section: one at which all of its buffers live
};

}  // namespace sluice::scheduler
