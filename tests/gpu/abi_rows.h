// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

/// One number of the driver's binary interface.
struct AbiRow {
  const char* what;
  uint64_t value;
};

/// As common/cuda/abi.h has it, and as the vendor's cuda.h has it. The two headers use the same
/// names, so each is seen by one translation unit only.
std::span<const AbiRow> OurRows();
std::span<const AbiRow> VendorRows();

#define ABI_VALUE(constant) {#constant, (uint64_t)(constant)},
#define ABI_SIZE(type) {"sizeof(" #type ")", sizeof(type)},
#define ABI_OFFSET(structure, member) \
  {"offsetof(" #structure ", " #member ")", offsetof(structure, member)},
