// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "tools/replay/host_work.h"

#include <dlfcn.h>
#include <time.h>

namespace sluice::replay {

HostWork::HostWork() {
  // Loaded by now. The simulated driver exports this beside the driver's names.
  if (void* driver = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL)) {
    declare_ = reinterpret_cast<int (*)(uint64_t)>(::dlsym(driver, "simgpuHostWork"));
  }
}

void HostWork::For(uint64_t ns) const {
  if (declare_ != nullptr && declare_(ns) == 0) return;
  constexpr uint64_t kSecond = 1'000'000'000;
  timespec left{static_cast<time_t>(ns / kSecond), static_cast<long>(ns % kSecond)};
  while (::nanosleep(&left, &left) != 0) {
  }
}

}  // namespace sluice::replay
