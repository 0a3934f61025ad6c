// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "intercept/nvml/nvml.h"

#include <dlfcn.h>
#include <string.h>

#include <atomic>

#include "common/cuda/nvml_abi.h"
#include "intercept/base/system.h"
#include "intercept/hooks/process.h"
#include "intercept/hooks/taken_out.h"
#include "intercept/lookup/real_dlsym.h"

// What programs are told by NVIDIA's management library (nvidia-smi, monitors, frameworks): the
// job's own limit, use and process, as the driver's own calls tell it. The figures are the
// daemon's, because the program that asks is often not the one that uses the GPU.

namespace sluice {
namespace {

/// The management library's own function, once that is loaded into the process.
void* RealNvml(const char* symbol) {
  static constinit std::atomic<void*> library{nullptr};
  void* handle = library.load(std::memory_order_acquire);
  if (handle == nullptr) {
    handle = dlopen("libnvidia-ml.so.1", RTLD_LAZY | RTLD_NOLOAD);
    static_cast<void>(dlerror());  // the next dlerror of the program must not speak of our question
    if (handle == nullptr) return nullptr;
    library.store(handle, std::memory_order_release);  // a second one counts a reference too many
  }
  return RealDlsym(handle, symbol);
}

int HexDigit(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
  if (digit >= 'A' && digit <= 'F') return digit - 'A' + 10;
  return -1;
}

/// "GPU-8f2c9f0e-..." against the sixteen bytes that it spells.
bool SameDevice(const char* text, const uint8_t (&uuid)[16]) {
  size_t digits = 0;
  if (strncmp(text, "GPU-", 4) != 0) return false;
  for (const char* at = text + 4; *at != 0; ++at) {
    if (*at == '-') continue;
    const int digit = HexDigit(*at);
    if (digit < 0 || digits == 32) return false;
    const int half = digits % 2 == 0 ? uuid[digits / 2] >> 4 : uuid[digits / 2] & 15;
    if (half != digit) return false;
    ++digits;
  }
  return digits == 32;
}

/// What the daemon says of this job, if the device is the job's.
bool AskAbout(nvmlDevice_t device, protocol::Told* told) {
  using GetUuid = nvmlReturn_t (*)(nvmlDevice_t, char*, unsigned);
  const auto get_uuid = reinterpret_cast<GetUuid>(RealNvml("nvmlDeviceGetUUID"));
  char text[96];  // NVML_DEVICE_UUID_V2_BUFFER_SIZE
  return get_uuid != nullptr && ReportOfJob().Ask(JobSocket(), told) &&
         (told->flags & protocol::kLeaveAlone) == 0 &&
         get_uuid(device, text, sizeof text) == NVML_SUCCESS && SameDevice(text, told->device_uuid);
}

template <class Memory>
nvmlReturn_t OwnMemory(const protocol::Told& told, nvmlReturn_t result, Memory* memory) {
  if (result != NVML_SUCCESS) return result;
  if constexpr (requires { memory->reserved; }) memory->reserved = 0;
  memory->total = told.total_bytes;
  memory->used = told.used_bytes;
  memory->free = told.total_bytes - told.used_bytes;
  return result;
}

/// Of a list of rows by process those of the job's: `list` fills one, `rows` has room for `*count`.
template <class List, class Row>
nvmlReturn_t OwnRows(const protocol::Told& told, List list, unsigned* count, Row* rows) {
  constexpr unsigned kMost = 4096;
  auto* all = static_cast<Row*>(MapMemory(kMost * sizeof(Row)));
  if (all == nullptr) return NVML_ERROR_UNKNOWN;
  unsigned found = kMost;
  nvmlReturn_t result = list(&found, all);
  unsigned own = 0;
  for (unsigned i = 0; result == NVML_SUCCESS && i < found; ++i) {
    if (told.pid == 0 || all[i].pid != told.pid) continue;
    if (own < *count) rows[own] = all[i];
    ++own;
  }
  UnmapMemory(all, kMost * sizeof(Row));
  if (result != NVML_SUCCESS) return result;
  if (own > *count) result = NVML_ERROR_INSUFFICIENT_SIZE;
  *count = own;
  return result;
}

template <class Real, class Info>
nvmlReturn_t OwnProcesses(const protocol::Told& told, Real real, nvmlDevice_t device,
                          unsigned* count, Info* infos) {
  if (count == nullptr || (*count > 0 && infos == nullptr)) return real(device, count, infos);
  return OwnRows(
      told, [=](unsigned* found, Info* all) { return real(device, found, all); }, count, infos);
}

/// Without a buffer it is asked how many there are, whatever `*count` says.
template <class Real, class Sample>
nvmlReturn_t OwnSamples(const protocol::Told& told, Real real, nvmlDevice_t device, Sample* samples,
                        unsigned* count, unsigned long long since) {  // NOLINT(google-runtime-int)
  if (count == nullptr) return real(device, samples, count, since);
  if (samples == nullptr) *count = 0;
  const nvmlReturn_t result = OwnRows(
      told, [=](unsigned* found, Sample* all) { return real(device, all, found, since); }, count,
      samples);
  // As the management library says it of a GPU on which nobody computed.
  return result == NVML_SUCCESS && *count == 0 ? NVML_ERROR_NOT_FOUND : result;
}

}  // namespace
}  // namespace sluice

#define SLUICE_NVML_HOOK(symbol, params, names, policy)                          \
  extern "C" __attribute__((visibility("default"))) nvmlReturn_t symbol params { \
    using namespace sluice; /* NOLINT(google-build-using-namespace) */           \
    const auto real = reinterpret_cast<decltype(&::symbol)>(RealNvml(#symbol));  \
    if (real == nullptr) return NVML_ERROR_UNINITIALIZED;                        \
    protocol::Told told;                                                         \
    return TakenOut(#symbol) || !AskAbout(device, &told) ? real names : policy;  \
  }
#include "intercept/nvml/nvml_hooks.def"
#undef SLUICE_NVML_HOOK

void* sluice::NvmlHookFor(const char* name, void* found) {
#define SLUICE_NVML_HOOK(symbol, params, names, policy)                            \
  if (strcmp(name, #symbol) == 0) {                                                \
    return RealNvml(name) == found ? reinterpret_cast<void*>(&::symbol) : nullptr; \
  }
#include "intercept/nvml/nvml_hooks.def"
#undef SLUICE_NVML_HOOK
  return nullptr;
}
