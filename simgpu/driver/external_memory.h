// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <atomic>
#include <cstdint>

#include "common/unique_fd.h"

/// What cuImportExternalMemory gives: a reference to memory, without an address.
struct CUextMemory_st {
  static constexpr uint32_t kMagic = 0x45584d31;
  std::atomic<uint32_t> magic{0};
  sluice::UniqueFd file;
  uint64_t bytes = 0;
};
