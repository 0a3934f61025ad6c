// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/status.h"

namespace sluice::simgpu {

inline constexpr uint32_t kMaxInjections = 16;
inline constexpr uint32_t kInjectionName = 64;

/// Some calls of one function (or of all whose names begin alike) come late, fail, or both.
struct Injection {
  char name[kInjectionName];  // of an exported function; a `*` at the end stands for any ending
  uint64_t first;             // number of the first call it concerns, from 1
  uint64_t count;             // how many; UINT64_MAX: all from there on
  uint64_t delay_ns;          // simulated time that the call takes longer
  uint32_t result;            // CUresult that it answers without doing anything; 0: it goes on
  uint32_t reserved;

  bool Names(std::string_view function) const;
};

/// An injection and the calls that it has seen. May lie in shared memory: then the calls of all
/// processes count together.
struct InjectionSlot {
  Injection rule;
  std::atomic<uint64_t> calls;
  std::atomic<uint64_t> hits;
};

/// `NAME[@FIRST[+COUNT]]=ACTION[,ACTION]`, several of them with `;` between. An action is an error
/// (CUDA_ERROR_OUT_OF_MEMORY, or 2) or a delay (200us, 5ms, 1s). Without @ every call is meant,
/// with @FIRST that one alone; COUNT `*` means all from there on. Errors name the piece of text and
/// what is allowed.
Result<std::vector<Injection>> ParseInjections(std::string_view text);

/// What a call of `function` has to suffer now. Counts the call.
struct Suffering {
  uint64_t delay_ns = 0;
  uint32_t result = 0;
};
Suffering Suffer(InjectionSlot* slots, uint32_t count, std::string_view function);

}  // namespace sluice::simgpu
