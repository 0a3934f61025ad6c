// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <span>

namespace sluice::simgpu {

/// An exported function of this library.
struct Entry {
  const char* symbol;
  const char* base;
  int version;
  bool per_thread;
  void* address;
};

std::span<const Entry> Entries();

}  // namespace sluice::simgpu
