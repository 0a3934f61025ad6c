// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "simgpu/driver/interference.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "simgpu/driver/driver.h"
#include "simgpu/sharing/futex.h"
#include "simgpu/sharing/injection.h"

namespace sluice::simgpu {
namespace {

/// The injections of the environment, for this process alone.
struct OwnInjections {
  uint32_t count = 0;
  bool refused = false;  // the text was wrong: nothing may run as if it had been heeded
  InjectionSlot slot[kMaxInjections] = {};

  OwnInjections() {
    const char* text = getenv("SLUICE_SIMGPU_INJECT");
    if (text == nullptr) return;
    const Result<std::vector<Injection>> rules = ParseInjections(text);
    if (!rules.ok()) {
      fprintf(stderr, "simulated GPU: SLUICE_SIMGPU_INJECT: %s\n",
              rules.status().message().c_str());
      refused = true;
      return;
    }
    for (const Injection& rule : *rules) slot[count++].rule = rule;
  }
};

OwnInjections& Own() {
  static auto* own = new OwnInjections;
  return *own;
}

/// The GPU that the call concerns: the current context's, or the first one.
const Device& DeviceOfCall(const Driver& driver) {
  const std::vector<StackedContext>& stack = ContextStack();
  const Context* context = stack.empty() ? nullptr : stack.back().context;
  return context != nullptr ? *context->device() : *driver.devices.front();
}

/// Sleeps what is long, so that a delayed call does not keep a core busy.
void Linger(uint64_t ns) {
  constexpr uint64_t kLong = 200'000;
  const uint64_t end = MonotonicNs() + ns;
  if (ns > kLong) {
    const uint64_t until = end - kLong / 2;
    const timespec at{static_cast<time_t>(until / 1'000'000'000),
                      static_cast<long>(until % 1'000'000'000)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, nullptr) == EINTR) {
    }
  }
  while (MonotonicNs() < end) {
  }
}

}  // namespace

CUresult Interfere(const char* function) {
  OwnInjections& own = Own();
  if (own.refused) return CUDA_ERROR_SYSTEM_NOT_READY;
  Driver* driver = Driver::Get();
  StatePage* page = driver == nullptr ? nullptr : DeviceOfCall(*driver).gpu()->page();
  const uint32_t shared = page == nullptr ? 0 : page->injections.load(std::memory_order_acquire);
  if (own.count == 0 && shared == 0) return CUDA_SUCCESS;
  Suffering all = Suffer(own.slot, own.count, function);
  const Suffering more = Suffer(page == nullptr ? nullptr : page->injection, shared, function);
  all.delay_ns += more.delay_ns;
  if (all.result == 0) all.result = more.result;
  if (driver != nullptr && driver->virtual_time != nullptr) {
    if (all.delay_ns != 0) driver->virtual_time->Spend(all.delay_ns);
    return static_cast<CUresult>(all.result);
  }
  const double scale = driver == nullptr ? 1 : driver->machine().time_scale;
  if (all.delay_ns != 0) Linger(static_cast<uint64_t>(static_cast<double>(all.delay_ns) * scale));
  return static_cast<CUresult>(all.result);
}

}  // namespace sluice::simgpu
