// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sluice::simgpu {

/// The kernels that a module's ELF object exports (simgpu/module/kernel_abi.h), in the order of its
/// symbol table. Of a damaged object, those that can be read.
std::vector<std::string> KernelNames(std::string_view object);

}  // namespace sluice::simgpu
