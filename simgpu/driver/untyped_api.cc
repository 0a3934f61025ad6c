// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "common/cuda/abi.h"
#include "simgpu/driver/driver.h"

// The names that a driver exports and this one does not implement. Programs that bind all names
// when they start find them; whoever calls one learns that it is not supported. Their parameters do
// not matter: the caller puts them where they are and takes them away again.
extern "C" {
#define CU_UNTYPED(symbol, base, version, per_thread) \
  CUresult symbol(void);                              \
  CUresult symbol(void) { return sluice::simgpu::NotSupported(#symbol); }
#include "common/cuda/exports.def"
#undef CU_UNTYPED
}
