// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <string>
#include <string_view>

#include "common/status.h"

namespace sluice::simgpu {

/// The ELF object inside a module image (simgpu/module/kernel_abi.h). kInvalidArgument for damaged
/// images, kFailedPrecondition for code of real GPUs (PTX, cubin, fat binary).
Result<std::string> DecodeImage(const void* image);

/// The reverse, for compilers and tests.
std::string EncodeImage(std::string_view object);

}  // namespace sluice::simgpu
