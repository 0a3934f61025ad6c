// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "intercept/lookup/lookup.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "intercept/base/line.h"
#include "intercept/hooks/process.h"
#include "intercept/lookup/real_dlsym.h"
#include "intercept/lookup/unseen_names.h"
#include "intercept/nvml/nvml.h"

// The three ways to a driver function: link-time binding finds our exported hook before the
// driver's; dlsym on the driver's handle and cuGetProcAddress are answered here.

namespace sluice {
namespace {

struct HookRow {
  std::string_view symbol;
  std::string_view base;
  int version;
  bool per_thread;
  size_t offset;  // of the driver's own entry point in DriverTable
};

/// Where the driver's functions stand in kDriverFunctions.
enum FunctionIndex : size_t {
#define CU_FUNCTION(symbol, base, version, per_thread, params, names) kAt_##symbol,
#include "common/cuda/functions.def"
#undef CU_FUNCTION
};

constexpr HookRow RowOf(std::string_view symbol, const DriverFunction& function) {
  return {symbol, function.base, function.version, function.per_thread, function.offset};
}

constexpr HookRow kUnsorted[] = {
#define SLUICE_HOOK(symbol, what, params, names, policy) \
  RowOf(#symbol, kDriverFunctions[kAt_##symbol]),
#include "intercept/hooks/hooks.def"
#undef SLUICE_HOOK
};
constexpr size_t kHooks = sizeof(kUnsorted) / sizeof(kUnsorted[0]);

constexpr std::array<HookRow, kHooks> Sorted() {
  std::array<HookRow, kHooks> rows = std::to_array(kUnsorted);
  std::sort(rows.begin(), rows.end(),
            [](const HookRow& a, const HookRow& b) { return a.symbol < b.symbol; });
  return rows;
}
constexpr std::array<HookRow, kHooks> kRows = Sorted();

const HookRow* RowNamed(std::string_view symbol) {
  size_t low = 0;
  size_t high = kHooks;
  while (low < high) {
    const size_t middle = (low + high) / 2;
    if (kRows[middle].symbol < symbol) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low < kHooks && kRows[low].symbol == symbol ? &kRows[low] : nullptr;
}

// Our exported function of that name. By a comparison, because addresses are no constants.
void* HookNamed(std::string_view symbol) {
#define SLUICE_HOOK(name, what, params, names, policy) \
  if (symbol == #name) return reinterpret_cast<void*>(&name);
#include "intercept/hooks/hooks.def"
#undef SLUICE_HOOK
  return nullptr;
}

// What the driver itself gives for a base name at the version that introduced a variant.
void* DriverAnswer(const DriverTable& driver, const HookRow& row, cuuint64_t flags) {
  void* entry = nullptr;
  CUresult result = CUDA_ERROR_NOT_FOUND;
  if (driver.cuGetProcAddress_v2 != nullptr) {
    CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
    result = driver.cuGetProcAddress_v2(row.base.data(), &entry, row.version, flags, &status);
  } else if (driver.cuGetProcAddress != nullptr) {
    result = driver.cuGetProcAddress(row.base.data(), &entry, row.version, flags);
  }
  return result == CUDA_SUCCESS ? entry : nullptr;
}

// Every function of the driver that this library was written with, by both of its names.
constexpr std::string_view kKnown[] = {
#define CU_EXPORT(symbol, base, version, per_thread) #base, #symbol,
#include "common/cuda/exports.def"
#undef CU_EXPORT
};

bool IsKnown(std::string_view name) {
  for (const std::string_view known : kKnown) {
    if (known == name) return true;
  }
  return false;
}

constinit UnseenNames g_unseen;

// A runtime that is newer than this library asks for many functions and uses few, so it is counted,
// and nobody is told unless he asks. One line for each name.
void SeeUnseen(const char* symbol) {
  CountUnseen(g_unseen.Add(symbol));
  const char* verbose = getenv("SLUICE_VERBOSE");
  if (verbose == nullptr || strcmp(verbose, "1") != 0) return;
  Line()
      .Text("passes through unseen, because it is newer than the library: ")
      .Text(symbol, 128)
      .PrintOnce();
}

bool LooksLikeTheDrivers(const char* name) {
  return name[0] == 'c' && name[1] == 'u' && name[2] >= 'A' && name[2] <= 'Z';
}

// Whether the function lies in the driver: other libraries' names begin like the driver's.
bool IsTheDrivers(const void* function) {
  const DriverTable* driver = LoadedDriver(false);
  Dl_info ours{};
  Dl_info its{};
  return driver != nullptr && driver->cuGetProcAddress != nullptr &&
         dladdr(reinterpret_cast<const void*>(driver->cuGetProcAddress), &ours) != 0 &&
         dladdr(function, &its) != 0 && ours.dli_fbase == its.dli_fbase;
}

}  // namespace

void* HookForEntry(const char* symbol, void* entry, cuuint64_t flags) {
  const DriverTable* driver = LoadedDriver(false);
  if (driver == nullptr) return entry;
  const std::string_view base(symbol);
  bool hooked = false;
  for (const HookRow& row : kRows) {
    if (row.base != base) continue;
    if (EntryOf(*driver, row.offset) == entry) return HookNamed(row.symbol);
    hooked = true;
  }
  if (!hooked) {
    if (!base.empty() && !IsKnown(base)) SeeUnseen(symbol);
    return entry;
  }
  // A driver may answer with other addresses than its exported ones. Then the variant is recognised
  // by asking for it: the same address for the version that introduced it. Never by its name or by
  // being the newest: a wrong variant has the wrong arguments.
  const bool per_thread = (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0;
  for (const bool kind : {true, false}) {
    if (kind && !per_thread) continue;
    for (const HookRow& row : kRows) {
      if (row.base != base || row.per_thread != kind) continue;
      if (DriverAnswer(*driver, row, flags) == entry) return HookNamed(row.symbol);
    }
  }
  return entry;
}

}  // namespace sluice

namespace {

constinit std::atomic<void* (*)(void*, const char*)> g_dlsym{nullptr};

#if defined(__x86_64__)
constexpr const char* kDlsymVersion = "GLIBC_2.2.5";
constexpr const char* kDlmopenVersion = "GLIBC_2.3.4";
#else
constexpr const char* kDlmopenVersion = "GLIBC_2.17";
constexpr const char* kDlsymVersion = "GLIBC_2.17";
#endif

void* (*Dlsym())(void*, const char*) {
  auto* real = g_dlsym.load(std::memory_order_relaxed);
  if (real == nullptr) {
    real =
        reinterpret_cast<void* (*)(void*, const char*)>(dlvsym(RTLD_NEXT, "dlsym", kDlsymVersion));
    g_dlsym.store(real, std::memory_order_relaxed);
  }
  return real;
}

}  // namespace

void* sluice::RealDlsym(void* library, const char* name) {
  auto* real = Dlsym();
  return real == nullptr ? nullptr : real(library, name);
}

/// Called by the assembly stub that is our exported dlsym. Either `answer` is what the caller gets,
/// or the stub jumps to `real`, which then sees the true caller (RTLD_NEXT and RTLD_DEFAULT depend
/// on it).
struct DlsymDecision {
  void* answer;
  void* real;
};

extern "C" __attribute__((visibility("hidden"))) DlsymDecision SluiceDecideDlsym(void* library,
                                                                                 const char* name) {
  const DlsymDecision pass{nullptr, reinterpret_cast<void*>(Dlsym())};
  if (name == nullptr || pass.real == nullptr) return pass;
  if (library == RTLD_NEXT || library == RTLD_DEFAULT) return pass;
  if (strncmp(name, "nvml", 4) == 0) {
    void* found = sluice::RealDlsym(library, name);
    if (found == nullptr) return pass;
    return {sluice::NvmlHookFor(name, found), pass.real};
  }
  if (name[0] != 'c' || name[1] != 'u') return pass;
  const sluice::HookRow* row = sluice::RowNamed(name);
  if (row == nullptr) {
    if (!sluice::LooksLikeTheDrivers(name) || sluice::IsKnown(name)) return pass;
    void* found = sluice::RealDlsym(library, name);
    if (found == nullptr || !sluice::IsTheDrivers(found)) return pass;
    sluice::SeeUnseen(name);
    return {found, pass.real};
  }
  // Only the driver's own function is replaced; a library that happens to have one of that name
  // keeps it. A name that is not there is looked up again by the stub, so that dlerror is as it
  // should be.
  void* found = sluice::RealDlsym(library, name);
  if (found == nullptr) return pass;
  const sluice::DriverTable* driver = sluice::LoadedDriver(false);
  if (driver == nullptr || sluice::EntryOf(*driver, row->offset) != found) return pass;
  return {sluice::HookNamed(row->symbol), pass.real};
}

/// Called by the assembly stub that is our exported dlmopen, which then jumps to what this returns:
/// the C library's own. In another namespace this library is not in front of the driver.
extern "C" __attribute__((visibility("hidden"))) void* SluiceSeeDlmopen(Lmid_t space,
                                                                        const char* file, int) {
  const char* name = file == nullptr ? nullptr : strrchr(file, '/');
  name = name == nullptr ? file : name + 1;
  if (space != LM_ID_BASE && name != nullptr &&
      (strncmp(name, "libcuda.so", 10) == 0 || strncmp(name, "libcudart.so", 12) == 0)) {
    sluice::Line()
        .Text("the program loads ")
        .Text(name, 128)
        .Text(
            " into a namespace of its own (dlmopen): what it takes of the GPU there is neither "
            "limited nor seen")
        .PrintOnce();
  }
  return dlvsym(RTLD_NEXT, "dlmopen", kDlmopenVersion);
}
