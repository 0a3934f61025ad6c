// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "intercept/base/line.h"
#include "intercept/hooks/process.h"
#include "intercept/hooks/taken_out.h"
#include "intercept/lookup/lookup.h"
#include "intercept/outside/array_bytes.h"
#include "intercept/outside/copy_bytes.h"

// The exported functions, one per line of hooks.def. Their parameters are checked against
// common/cuda/functions.def by the compiler: a different declaration of the same C function is an
// error.

namespace sluice {
namespace {

using protocol::Family;

constexpr CUdevice kNoDevice = -1;

CUstream Legacy(CUstream stream) { return stream == nullptr ? CU_STREAM_LEGACY : stream; }
CUstream PerThread(CUstream stream) { return stream == nullptr ? CU_STREAM_PER_THREAD : stream; }

// The oldest interface has 32 bits for a size: more is told as the most that fits.
template <class Ask>
CUresult ThirtyTwoBits(unsigned* first, unsigned* second, Ask ask) {
  size_t sizes[2] = {};
  const CUresult result = ask(&sizes[0], &sizes[1]);
  if (result != CUDA_SUCCESS) return result;
  const auto fit = [](size_t size) {
    return size > 0xffffffffu ? 0xffffffffu : static_cast<unsigned>(size);
  };
  if (first != nullptr) *first = fit(sizes[0]);
  if (second != nullptr) *second = fit(sizes[1]);
  return result;
}

// The interface before CUDA 3.2 has 32 bits for an address, too. No block of the job lies that low,
// and a driver that finds room there would give it beyond the limit.
CUresult RefuseNarrowAddress(const Client* client) {
  CUdevice device = kNoDevice;
  const CUresult current = client->driver().cuCtxGetDevice(&device);
  if (current != CUDA_SUCCESS) return current;
  Line()
      .Text("memory with 32-bit addresses (cuMemAlloc without _v2) is not given; use cuMemAlloc_v2")
      .PrintOnce();
  return CUDA_ERROR_NOT_SUPPORTED;
}

// The driver's answer, unless ours is an error.
template <class Real>
CUresult OrElse(CUresult refusal, Real real) {
  return refusal == CUDA_SUCCESS ? real() : refusal;
}

// How many launches a list has. 0: what the program says cannot be, and the driver says so.
unsigned Plausible(const Client* client, const CUDA_LAUNCH_PARAMS* launches, unsigned count) {
  int devices = 0;
  return launches != nullptr && client->driver().cuDeviceGetCount(&devices) == CUDA_SUCCESS &&
                 count <= static_cast<unsigned>(devices)
             ? count
             : 0;
}

// One call that launches on several streams: as a launch on each of them, which the driver knows
// where the stream's context is current. The call itself is made where the program made it.
template <class Real>
CUresult LaunchOnEach(Client* client, const CUDA_LAUNCH_PARAMS* launches, unsigned count,
                      const Real& real) {
  if (count == 0) return real();
  const DriverTable& driver = client->driver();
  const auto rest = [&] { return LaunchOnEach(client, launches + 1, count - 1, real); };
  CUcontext context = nullptr;
  if (driver.cuStreamGetCtx == nullptr ||
      driver.cuStreamGetCtx(launches->hStream, &context) != CUDA_SUCCESS ||
      driver.cuCtxPushCurrent_v2(context) != CUDA_SUCCESS) {
    return rest();
  }
  const CUresult result = client->Launch(launches->function, Legacy(launches->hStream), [&] {
    static_cast<void>(driver.cuCtxPopCurrent_v2(&context));
    const CUresult issued = rest();
    static_cast<void>(driver.cuCtxPushCurrent_v2(context));
    return issued;
  });
  static_cast<void>(driver.cuCtxPopCurrent_v2(&context));
  return result;
}

CUresult ReplaceEntry(CUresult result, const char* symbol, void** pfn, cuuint64_t flags) {
  if (result == CUDA_SUCCESS && symbol != nullptr && pfn != nullptr && *pfn != nullptr) {
    *pfn = HookForEntry(symbol, *pfn, flags);
  }
  return result;
}

}  // namespace
}  // namespace sluice

#define SLUICE_HOOK(symbol, what, params, names, policy)                         \
  extern "C" __attribute__((visibility("default"))) CUresult symbol params {     \
    using namespace sluice; /* NOLINT(google-build-using-namespace) */           \
    const HookScope scope;                                                       \
    const PFN_##symbol real = scope.driver().symbol;                             \
    if (real == nullptr) return CUDA_ERROR_NOT_FOUND;                            \
    [[maybe_unused]] Client* const client = scope.client();                      \
    return scope.client() == nullptr || TakenOut(#symbol) ? real names : policy; \
  }
#include "intercept/hooks/hooks.def"
#undef SLUICE_HOOK

#ifdef SLUICE_TEST_SWITCHES
/// What nothing but its cost would show: captures that the library takes for open.
extern "C" __attribute__((visibility("default"))) unsigned sluice_test_open_captures() {
  const sluice::HookScope scope;
  return scope.client() == nullptr ? 0 : scope.client()->open_captures();
}
#endif
