// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// A table of buffers from anybody, read, placed and judged (readers.h).
#include <cstdio>
#include <cstdlib>

#include "tests/fuzz/readers.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto violation = sluice::fuzz::PlayTable({reinterpret_cast<const char*>(data), size});
  if (!violation.has_value()) return 0;
  std::fprintf(stderr, "violation: %s\n", violation->c_str());
  std::abort();
}
