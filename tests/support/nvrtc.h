// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <string>

#include "tests/support/driver.h"

namespace sluice::testing {

/// CUDA C to a module image for the device of the current context, by the machine's own NVRTC.
/// Throws std::runtime_error with one line: no NVRTC found, or the first line of the compiler's
/// log.
std::string CompileForCurrentDevice(Driver& driver, const char* source, const char* name);

}  // namespace sluice::testing
