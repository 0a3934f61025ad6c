// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <algorithm>
#include <cstdint>

#include "common/bytes.h"

namespace sluice {

/// What a GPU keeps beside its pool unless somebody says otherwise: room for contexts, which take
/// some hundred MiB each on a real one, and for what is charged outside the pool.
constexpr uint64_t DefaultReserve(uint64_t gpu_bytes) {
  return std::min<uint64_t>(gpu_bytes / 8, 2 * kGiB);
}

}  // namespace sluice
