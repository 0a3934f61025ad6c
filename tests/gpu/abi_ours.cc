// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "common/cuda/abi.h"
#include "tests/gpu/abi_rows.h"

std::span<const AbiRow> OurRows() {
  static const AbiRow rows[] = {
#include "tests/gpu/abi_rows.def"
  };
  return rows;
}
