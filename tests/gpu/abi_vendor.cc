// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <cuda.h>

#include "tests/gpu/abi_rows.h"

std::span<const AbiRow> VendorRows() {
  static const AbiRow rows[] = {
#include "tests/gpu/abi_rows.def"
  };
  return rows;
}
