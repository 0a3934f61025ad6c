// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <optional>
#include <string_view>

#include "common/cuda/abi.h"

namespace sluice::simgpu {

struct CudaError {
  CUresult code;
  const char* name;
  const char* text;
};

/// Null for a code that this driver does not know.
const CudaError* FindCudaError(CUresult code);
const CudaError* FindCudaError(std::string_view name);

}  // namespace sluice::simgpu
