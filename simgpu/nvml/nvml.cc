// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "common/cuda/nvml_abi.h"
#include "simgpu/sharing/device_token.h"
#include "simgpu/sharing/futex.h"
#include "simgpu/sharing/gpu_folders.h"
#include "simgpu/sharing/memory_limits.h"
#include "simgpu/sharing/nvml_switches.h"

using namespace sluice::simgpu;  // NOLINT(google-build-using-namespace): few names, C interface

struct nvmlEventSet_st {
  /// By GPU: errors of its state page that were told, or happened before. Nothing: not watched.
  std::array<std::optional<uint64_t>, kMaxGpus> seen;
};

namespace {

std::mutex g_mutex;
std::vector<std::unique_ptr<nvmlEventSet_st>> g_sets;
std::vector<std::unique_ptr<GpuState>> g_gpus;  // all: CUDA_VISIBLE_DEVICES hides none from NVML
int g_users = 0;

nvmlDevice_t Handle(size_t index) { return reinterpret_cast<nvmlDevice_t>(g_gpus[index].get()); }

/// Whether the GPU answers: not one that simgpu-ctl lose has taken off the bus.
nvmlReturn_t Reached(size_t index) {
  return IsLost(g_gpus[index]->dir()) ? NVML_ERROR_GPU_IS_LOST : NVML_SUCCESS;
}

/// Holds the lock; `result` says whether the call can go on.
struct Call {
  explicit Call(nvmlDevice_t device) : lock(g_mutex) {
    result = g_gpus.empty() ? NVML_ERROR_UNINITIALIZED : NVML_ERROR_INVALID_ARGUMENT;
    for (size_t i = 0; i < g_gpus.size(); ++i) {
      if (device != Handle(i)) continue;
      gpu = g_gpus[i].get();
      index = static_cast<uint32_t>(i);
      result = Reached(i);
    }
  }
  std::lock_guard<std::mutex> lock;
  GpuState* gpu = nullptr;
  uint32_t index = 0;
  nvmlReturn_t result = NVML_SUCCESS;
};

/// As nvmlDeviceGetPciInfo writes it.
std::string BusId(uint32_t index) {
  char text[32];
  snprintf(text, sizeof text, "%08X:%02X:%02X.0", 0u, PciBus(index), 0u);
  return text;
}

nvmlReturn_t CopyText(const std::string& text, char* out, unsigned length) {
  if (out == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  if (text.size() >= length) return NVML_ERROR_INSUFFICIENT_SIZE;
  snprintf(out, length, "%s", text.c_str());
  return NVML_SUCCESS;
}

constexpr uint64_t kLookAgainNs = 10'000'000;
constexpr int kDriverWithLimits = 615;

bool HasMemoryLimits(const GpuState& gpu) {
  return atoi(gpu.machine().driver.c_str()) >= kDriverWithLimits;
}

struct Running {
  unsigned pid;
  unsigned long long bytes;
  bool draws;
  uint64_t busy_ns;
};

/// One row per program with at least one living executor.
std::vector<Running> ListRunning(GpuState* gpu) {
  gpu->Reap();
  StatePage* page = gpu->page();
  const StateLock lock(page);
  std::vector<Running> rows;
  for (const ExecutorEntry& e : page->executor) {
    if (e.used == 0) continue;
    // The real library numbers them as the machine does, not as their containers.
    const auto pid = static_cast<unsigned>(NumberHere(e.client));
    bool seen = false;
    for (const Running& row : rows) seen = seen || row.pid == pid;
    if (seen) continue;
    const ProcessEntry& process = page->process[e.process];
    rows.push_back({pid, process.bytes_now.load(), process.draws != 0, process.busy_ns.load()});
  }
  return rows;
}

/// With the lock held.
bool KnownSet(nvmlEventSet_t set) {
  for (const auto& known : g_sets) {
    if (known.get() == set) return true;
  }
  return false;
}

/// The oldest error of a GPU that the set has not told yet. With the lock held.
bool NextXid(nvmlEventSet_t set, size_t index, unsigned long long* code) {
  const StatePage* page = g_gpus[index]->page();
  const StateLock lock(g_gpus[index]->page());
  std::optional<uint64_t>& seen = set->seen[index];
  if (!seen || *seen == page->xids) return false;
  *seen = std::max(*seen, page->xids - std::min<uint64_t>(page->xids, kKeptXids));
  *code = page->xid[(*seen)++ % kKeptXids].code;
  return true;
}

/// Which of the lists the programs are in: a client of MPS is no compute process by itself, one
/// that draws is in the list of those, too.
enum class List { kCompute, kMps, kGraphics };

template <typename Info>
nvmlReturn_t ListProcesses(nvmlDevice_t device, List list, unsigned* count, Info* infos) {
  const Call call(device);
  if (call.result != NVML_SUCCESS) return call.result;
  if (count == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  const bool mps = call.gpu->machine().sharing == sluice::Sharing::kMps;
  std::vector<Running> rows;
  if (list == List::kGraphics || mps == (list == List::kMps)) rows = ListRunning(call.gpu);
  if (list == List::kGraphics) std::erase_if(rows, [](const Running& row) { return !row.draws; });
  const unsigned room = *count;
  *count = static_cast<unsigned>(rows.size());
  if (rows.size() > room) return NVML_ERROR_INSUFFICIENT_SIZE;
  if (!rows.empty() && infos == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  for (size_t i = 0; i < rows.size(); ++i) {
    infos[i] = {};
    infos[i].pid = rows[i].pid;
    infos[i].usedGpuMemory = rows[i].bytes;
  }
  return NVML_SUCCESS;
}

}  // namespace

nvmlReturn_t nvmlInit_v2(void) {
  const std::lock_guard lock(g_mutex);
  if (g_gpus.empty()) {
    const char* dir = getenv("SLUICE_SIMGPU");
    if (dir == nullptr || *dir == 0) return NVML_ERROR_DRIVER_NOT_LOADED;
    auto gpus = OpenGpus(dir);
    if (!gpus.ok()) {
      fprintf(stderr, "simulated GPU: %s\n", gpus.status().message().c_str());
      return NVML_ERROR_DRIVER_NOT_LOADED;
    }
    g_gpus = std::move(*gpus);
  }
  ++g_users;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlShutdown(void) {
  const std::lock_guard lock(g_mutex);
  if (g_users == 0) return NVML_ERROR_UNINITIALIZED;
  if (--g_users == 0) g_gpus.clear();
  return NVML_SUCCESS;
}

const char* nvmlErrorString(nvmlReturn_t result) {
  switch (result) {
    case NVML_SUCCESS:
      return "Success";
    case NVML_ERROR_UNINITIALIZED:
      return "Uninitialized";
    case NVML_ERROR_INVALID_ARGUMENT:
      return "Invalid Argument";
    case NVML_ERROR_NOT_SUPPORTED:
      return "Not Supported";
    case NVML_ERROR_NOT_FOUND:
      return "Not Found";
    case NVML_ERROR_INSUFFICIENT_SIZE:
      return "Insufficient Size";
    case NVML_ERROR_DRIVER_NOT_LOADED:
      return "Driver Not Loaded";
    case NVML_ERROR_TIMEOUT:
      return "Timeout";
    case NVML_ERROR_FUNCTION_NOT_FOUND:
      return "Function Not Found";
    case NVML_ERROR_GPU_IS_LOST:
      return "GPU is lost";
    case NVML_ERROR_ARGUMENT_VERSION_MISMATCH:
      return "Argument version mismatch";
    default:
      return "Unknown Error";
  }
}

nvmlReturn_t nvmlSystemGetDriverVersion(char* version, unsigned length) {
  const std::lock_guard lock(g_mutex);
  if (g_gpus.empty()) return NVML_ERROR_UNINITIALIZED;
  return CopyText(g_gpus.front()->machine().driver, version, length);
}

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned* count) {
  const std::lock_guard lock(g_mutex);
  if (g_gpus.empty()) return NVML_ERROR_UNINITIALIZED;
  if (count == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  *count = static_cast<unsigned>(g_gpus.size());
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t* device) {
  const std::lock_guard lock(g_mutex);
  if (g_gpus.empty()) return NVML_ERROR_UNINITIALIZED;
  if (device == nullptr || index >= g_gpus.size()) return NVML_ERROR_INVALID_ARGUMENT;
  *device = Handle(index);
  return Reached(index);
}

nvmlReturn_t nvmlDeviceGetHandleByUUID(const char* uuid, nvmlDevice_t* device) {
  const std::lock_guard lock(g_mutex);
  if (g_gpus.empty()) return NVML_ERROR_UNINITIALIZED;
  if (device == nullptr || uuid == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  for (size_t i = 0; i < g_gpus.size(); ++i) {
    if (g_gpus[i]->UuidText() != uuid) continue;
    *device = Handle(i);
    return Reached(i);
  }
  return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char* id, nvmlDevice_t* device) {
  const std::lock_guard lock(g_mutex);
  if (g_gpus.empty()) return NVML_ERROR_UNINITIALIZED;
  if (device == nullptr || id == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  unsigned domain = 0;
  unsigned bus = 0;
  unsigned slot = 0;
  if (sscanf(id, "%x:%x:%x", &domain, &bus, &slot) != 3) return NVML_ERROR_INVALID_ARGUMENT;
  for (uint32_t i = 0; i < g_gpus.size(); ++i) {
    if (domain != 0 || bus != PciBus(i) || slot != 0) continue;
    *device = Handle(i);
    return Reached(i);
  }
  return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t* info) {
  const Call call(device);
  if (call.result != NVML_SUCCESS) return call.result;
  if (info == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  *info = {};
  info->bus = PciBus(call.index);
  const std::string id = BusId(call.index);
  snprintf(info->busId, sizeof info->busId, "%s", id.c_str());
  snprintf(info->busIdLegacy, sizeof info->busIdLegacy, "%s", id.c_str() + 4);
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned* index) {
  const Call call(device);
  if (call.result != NVML_SUCCESS) return call.result;
  if (index == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  *index = call.index;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char* uuid, unsigned length) {
  const Call call(device);
  return call.result != NVML_SUCCESS ? call.result : CopyText(call.gpu->UuidText(), uuid, length);
}

nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char* name, unsigned length) {
  const Call call(device);
  return call.result != NVML_SUCCESS ? call.result
                                     : CopyText(call.gpu->machine().name, name, length);
}

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t* memory) {
  const Call call(device);
  if (call.result != NVML_SUCCESS) return call.result;
  if (memory == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  const GpuState::Memory now = call.gpu->MemoryNow();
  *memory = {now.total, now.free, now.total - now.free};
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t* memory) {
  const Call call(device);
  if (call.result != NVML_SUCCESS) return call.result;
  if (memory == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  if (memory->version == 0) return NVML_ERROR_FUNCTION_NOT_FOUND;
  if (memory->version != kNvmlMemoryV2) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  const GpuState::Memory now = call.gpu->MemoryNow();
  *memory = {kNvmlMemoryV2, now.total, 0, now.free, now.total - now.free};
  return NVML_SUCCESS;
}

// As simgpu-ctl mig has set it. Nothing else of MIG is simulated: such a GPU has no parts.
nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned* current, unsigned* pending) {
  const Call call(device);
  if (call.result != NVML_SUCCESS) return call.result;
  if (current == nullptr || pending == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  *current = *pending =
      InMigMode(call.gpu->dir()) ? NVML_DEVICE_MIG_ENABLE : NVML_DEVICE_MIG_DISABLE;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceSetMemoryLimits_v1(nvmlDevice_t device, nvmlSetMemoryLimits_v1_t* limits) {
  const Call call(device);
  if (call.result != NVML_SUCCESS) return call.result;
  if (!HasMemoryLimits(*call.gpu)) return NVML_ERROR_NOT_SUPPORTED;
  if (limits == nullptr || limits->nameSpace == nullptr || limits->softLimit > limits->hardLimit) {
    return NVML_ERROR_INVALID_ARGUMENT;
  }
  const StateLock lock(call.gpu->page());
  return SetMemoryLimit(call.gpu->page(), MemoryGroup(limits->nameSpace), limits->softLimit,
                        limits->hardLimit)
             ? NVML_SUCCESS
             : NVML_ERROR_UNKNOWN;
}

nvmlReturn_t nvmlDeviceGetMemoryLimits_v1(nvmlDevice_t device, nvmlGetMemoryLimits_v1_t* limits) {
  const Call call(device);
  if (call.result != NVML_SUCCESS) return call.result;
  if (!HasMemoryLimits(*call.gpu)) return NVML_ERROR_NOT_SUPPORTED;
  if (limits == nullptr || limits->nameSpace == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  call.gpu->Reap();
  const StatePage* page = call.gpu->page();
  const StateLock lock(call.gpu->page());
  const uint64_t group = MemoryGroup(limits->nameSpace);
  const MemoryLimit found = FindMemoryLimit(*page, group);
  *limits = {limits->nameSpace, found.soft, found.hard, MemoryOfGroup(*page, group)};
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t device, unsigned* count,
                                                  nvmlProcessInfo_v1_t* infos) {
  return ListProcesses(device, List::kCompute, count, infos);
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v2(nvmlDevice_t device, unsigned* count,
                                                     nvmlProcessInfo_v2_t* infos) {
  return ListProcesses(device, List::kCompute, count, infos);
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned* count,
                                                     nvmlProcessInfo_v2_t* infos) {
  return ListProcesses(device, List::kCompute, count, infos);
}

nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses(nvmlDevice_t device, unsigned* count,
                                                   nvmlProcessInfo_v1_t* infos) {
  return ListProcesses(device, List::kGraphics, count, infos);
}
nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v2(nvmlDevice_t device, unsigned* count,
                                                      nvmlProcessInfo_v2_t* infos) {
  return ListProcesses(device, List::kGraphics, count, infos);
}
nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t device, unsigned* count,
                                                      nvmlProcessInfo_v2_t* infos) {
  return ListProcesses(device, List::kGraphics, count, infos);
}
nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses(nvmlDevice_t device, unsigned* count,
                                                     nvmlProcessInfo_v1_t* infos) {
  return ListProcesses(device, List::kMps, count, infos);
}
nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses_v2(nvmlDevice_t device, unsigned* count,
                                                        nvmlProcessInfo_v2_t* infos) {
  return ListProcesses(device, List::kMps, count, infos);
}
nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses_v3(nvmlDevice_t device, unsigned* count,
                                                        nvmlProcessInfo_v2_t* infos) {
  return ListProcesses(device, List::kMps, count, infos);
}

// One sample of each program that has computed: its part of the time since the GPU came up. How
// much of the memory's bandwidth that took is not modelled.
nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t device,
                                             nvmlProcessUtilizationSample_t* samples,
                                             unsigned* count, unsigned long long since) {
  const Call call(device);
  if (call.result != NVML_SUCCESS) return call.result;
  if (count == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  const uint64_t clock_ns = std::max<uint64_t>(DeviceClockNs(*call.gpu), 1);
  const auto now_us =
      static_cast<unsigned long long>(std::chrono::duration_cast<std::chrono::microseconds>(
                                          std::chrono::system_clock::now().time_since_epoch())
                                          .count());
  std::vector<Running> rows = ListRunning(call.gpu);
  std::erase_if(rows, [](const Running& row) { return row.busy_ns == 0; });
  if (rows.empty() || now_us <= since) return NVML_ERROR_NOT_FOUND;
  const unsigned room = *count;
  *count = static_cast<unsigned>(rows.size());
  if (samples == nullptr || rows.size() > room) return NVML_ERROR_INSUFFICIENT_SIZE;
  for (size_t i = 0; i < rows.size(); ++i) {
    const uint64_t percent = std::min<uint64_t>(100, 100 * rows[i].busy_ns / clock_ns);
    samples[i] = {rows[i].pid, now_us, static_cast<unsigned>(percent), 0, 0, 0};
  }
  return NVML_SUCCESS;
}

// The host maps no memory of this GPU over a bus.
nvmlReturn_t nvmlDeviceGetBAR1MemoryInfo(nvmlDevice_t device, nvmlBAR1Memory_t* memory) {
  const Call call(device);
  if (call.result != NVML_SUCCESS) return call.result;
  if (memory == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  const unsigned long long total = call.gpu->page()->capacity;
  *memory = {total, total, 0};
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetSupportedEventTypes(nvmlDevice_t device, unsigned long long* types) {
  const Call call(device);
  if (call.result != NVML_SUCCESS) return call.result;
  if (types == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  *types = nvmlEventTypeXidCriticalError;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t* set) {
  const std::lock_guard lock(g_mutex);
  if (g_gpus.empty()) return NVML_ERROR_UNINITIALIZED;
  if (set == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  g_sets.push_back(std::make_unique<nvmlEventSet_st>());
  *set = g_sets.back().get();
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set) {
  const std::lock_guard lock(g_mutex);
  const size_t freed =
      std::erase_if(g_sets, [set](const auto& known) { return known.get() == set; });
  return freed == 1 ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t device, unsigned long long types,
                                      nvmlEventSet_t set) {
  const Call call(device);
  if (call.result != NVML_SUCCESS) return call.result;
  if (!KnownSet(set)) return NVML_ERROR_INVALID_ARGUMENT;
  if (types != nvmlEventTypeXidCriticalError) return NVML_ERROR_NOT_SUPPORTED;
  const StateLock lock(call.gpu->page());
  set->seen[call.index] = call.gpu->page()->xids;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_v2_t* data,
                                 unsigned timeout_ms) {
  if (data == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  const uint64_t end = MonotonicNs() + uint64_t{timeout_ms} * 1'000'000;
  for (;;) {
    std::atomic<uint32_t>* bell = nullptr;
    uint32_t rung = 0;
    size_t watched = 0;
    {
      const std::lock_guard lock(g_mutex);
      if (g_gpus.empty()) return NVML_ERROR_UNINITIALIZED;
      if (!KnownSet(set)) return NVML_ERROR_INVALID_ARGUMENT;
      bell = &g_gpus.front()->page()->xid_bell;
      rung = bell->load();
      for (size_t i = 0; i < g_gpus.size(); ++i) {
        if (!set->seen[i]) continue;
        ++watched;
        bell = &g_gpus[i]->page()->xid_bell;
        rung = bell->load();
        if (!NextXid(set, i, &data->eventData)) continue;
        data->device = Handle(i);
        data->eventType = nvmlEventTypeXidCriticalError;
        data->gpuInstanceId = data->computeInstanceId = UINT32_MAX;  // no MIG
        return NVML_SUCCESS;
      }
    }
    const uint64_t now = MonotonicNs();
    if (now >= end) return NVML_ERROR_TIMEOUT;
    // One of several bells wakes nobody: look at the others again soon.
    FutexWait(bell, rung, watched > 1 ? std::min(end - now, kLookAgainNs) : end - now);
  }
}

nvmlReturn_t nvmlEventSetWait(nvmlEventSet_t set, nvmlEventData_v1_t* data, unsigned timeout_ms) {
  if (data == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  nvmlEventData_v2_t event{};
  const nvmlReturn_t result = nvmlEventSetWait_v2(set, &event, timeout_ms);
  if (result == NVML_SUCCESS) *data = {event.device, event.eventType, event.eventData};
  return result;
}
