// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include "intercept/lookup/driver_table.h"

namespace sluice {

/// Makes a context current on this thread as long as it lives; null: leaves what is. A context that
/// cannot be made current leaves it, too.
class ContextScope {
 public:
  ContextScope(const DriverTable& driver, CUcontext context)
      : driver_(driver),
        pushed_(context != nullptr && driver.cuCtxPushCurrent_v2(context) == CUDA_SUCCESS) {}
  ~ContextScope() {
    CUcontext popped = nullptr;
    if (pushed_) static_cast<void>(driver_.cuCtxPopCurrent_v2(&popped));
  }
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;

 private:
  const DriverTable& driver_;
  const bool pushed_;
};

}  // namespace sluice
