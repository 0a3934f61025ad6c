// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "intercept/gate/collective.h"

#include <string.h>

namespace sluice {

bool IsCollective(const char* kernel) {
  const char* const nccl = strstr(kernel, "nccl");
  if (nccl != nullptr && strstr(nccl, "Kernel_") != nullptr) return true;
  constexpr const char* kOthers[] = {"mscclpp", "nvshmemi_", "cross_device_reduce"};
  for (const char* part : kOthers) {
    if (strstr(kernel, part) != nullptr) return true;
  }
  return false;
}

}  // namespace sluice
