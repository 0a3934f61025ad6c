// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <dlfcn.h>

#include "common/cuda/nvml_abi.h"

namespace sluice::contract {

/// A function of the management library, found as programs find it: dlopen and dlsym. Null when
/// there is none. A template argument, not a value: nothing may have to be linked for its type.
template <typename F>
F* FindNvml(const char* name) {
  static void* library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
  return library == nullptr ? nullptr : reinterpret_cast<F*>(dlsym(library, name));
}
#define NVML(name) (::sluice::contract::FindNvml<decltype(name)>(#name))

}  // namespace sluice::contract
