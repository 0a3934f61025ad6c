// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "intercept/gate/function_ids.h"

#include "intercept/gate/collective.h"

namespace sluice {

namespace {

/// nullptr: the driver does not tell. A launch takes a CUkernel, too, in the place of a CUfunction.
const char* NameOf(const DriverTable& driver, CUfunction function) {
  const char* name = nullptr;
  if (driver.cuFuncGetName == nullptr) return nullptr;
  CUresult result = driver.cuFuncGetName(&name, function);
  if (result == CUDA_ERROR_INVALID_HANDLE && driver.cuKernelGetName != nullptr)
    result = driver.cuKernelGetName(&name, reinterpret_cast<CUkernel>(function));
  return result == CUDA_SUCCESS ? name : nullptr;
}

}  // namespace

uint64_t FunctionIds::Enter(const DriverTable& driver, CUfunction function) {
  const auto key = reinterpret_cast<uintptr_t>(function);
  const uint32_t home = Home(key);
  for (uint32_t i = 0; i < kProbes; ++i) {
    Entry& entry = entries_[(home + i) % kEntries];
    const uintptr_t seen = entry.function.load(std::memory_order_acquire);
    if (seen == key) return entry.id.load(std::memory_order_relaxed);
    if (seen == 0) break;
  }
  uint64_t id = key;
  if (const char* name = NameOf(driver, function); name != nullptr) {
    if (IsCollective(name)) saw_collective_.store(true, std::memory_order_relaxed);
    id = 0xcbf29ce484222325u;
    for (; *name != 0; ++name) id = (id ^ static_cast<unsigned char>(*name)) * 0x100000001b3u;
  }
  for (uint32_t i = 0; i < kProbes; ++i) {
    Entry& entry = entries_[(home + i) % kEntries];
    uintptr_t seen = 0;
    // kClaimed keeps readers out until the id is there.
    constexpr uintptr_t kClaimed = 1;
    if (!entry.function.compare_exchange_strong(seen, kClaimed, std::memory_order_relaxed))
      continue;
    entry.id.store(id, std::memory_order_relaxed);
    entry.function.store(key, std::memory_order_release);
    break;
  }
  return id;
}

void FunctionIds::Forget() {
  for (Entry& entry : entries_) entry.function.store(0, std::memory_order_relaxed);
}

}  // namespace sluice
