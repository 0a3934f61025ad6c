// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <stdint.h>

namespace sluice {

/// What the environment of a program may say of how its memory is served: nothing that is a limit.
struct ClientSettings {
  /// What is freed is overwritten.
  bool poison = false;
  /// Units go back, with a fence, before the GPU has passed them. For tests of the fences.
  bool early_release = false;
  /// Physical memory that the program may export comes from the pool, too. It cannot be exported
  /// then: nothing would tell when the last importer is done with it.
  bool lease_exportable = false;
  /// How long whoever waits for the daemon sees no sign of life of it before that is said.
  /// Otherwise for tests only.
  uint64_t silence_ms = 30'000;
};

}  // namespace sluice
