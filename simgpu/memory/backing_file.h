// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>

#include "common/status.h"
#include "common/unique_fd.h"

namespace sluice::simgpu {

/// The file behind a range of the calling process's memory.
struct BackingFile {
  UniqueFd fd;  // not valid: private memory
  uint64_t offset = 0;
  bool writable = false;
};

/// `start` and `bytes` are whole pages and must lie in one mapping.
Result<BackingFile> FindBackingFile(uint64_t start, uint64_t bytes);

}  // namespace sluice::simgpu
