// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <array>
#include <cstdint>
#include <random>
#include <vector>

#include "scheduler/ledger/types.h"

namespace sluice::fuzz {

/// What a client may send, by type; kUnknown: what only others send, or nobody.
enum class Kind : uint8_t {
  kHello,
  kReady,
  kLease,
  kGate,
  kRelease,
  kMismatch,
  kCharge,
  kUncharge,
  kCount,
  kQuiet,
  kAsk,
  kResume,
  kBye,
  kUnknown,
};
inline constexpr size_t kKinds = 14;
const char* NameOf(Kind kind);

/// What the client knows of itself: its frames can be all but right.
struct Sight {
  std::array<uint8_t, 16> device = {};
  scheduler::Extents held;  // leased to it
  uint32_t seq = 0;         // of the request that waits for its answer; 0: none
  uint32_t session = 0;
  uint32_t profile = 0;
  uint64_t iteration = 0;
  uint64_t unit_bytes = 1;
};

/// A frame of that kind: half of them as an honest client might send it, the others with a field at
/// its edge, with a wrong header, cut or too long.
std::vector<uint8_t> MakeFrame(Kind kind, const Sight& sight, std::mt19937_64& random);

}  // namespace sluice::fuzz
