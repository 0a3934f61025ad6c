// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "common/nvml.h"

#include <dlfcn.h>

#include <utility>

namespace sluice {
namespace {

using NvmlDevice = void*;
constexpr int kNvmlSuccess = 0;
constexpr int kNvmlInsufficientSize = 7;
// Far above what one GPU ever runs: an answer beyond it is a broken library, not a longer list.
constexpr unsigned kMaxProcesses = 1 << 16;

/// nvmlProcessInfo_v2_t, which _v2 and _v3 of the call share.
struct ProcessInfo {
  unsigned pid;
  unsigned long long used_bytes;  // NOLINT(google-runtime-int): the ABI says so
  unsigned gpu_instance;
  unsigned compute_instance;
};
static_assert(sizeof(ProcessInfo) == 24);

}  // namespace

struct Nvml::Api {
  void* library = nullptr;
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  int (*device_by_uuid)(const char*, NvmlDevice*) = nullptr;
  int (*compute_processes)(NvmlDevice, unsigned*, ProcessInfo*) = nullptr;
};

Nvml::Nvml(std::unique_ptr<Api> api) : api_(std::move(api)) {}

Nvml::~Nvml() {
  api_->shutdown();
  ::dlclose(api_->library);
}

Result<std::unique_ptr<Nvml>> Nvml::Load() {
  auto api = std::make_unique<Api>();
  api->library = ::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (api->library == nullptr) {
    const char* why = ::dlerror();
    return Status(StatusCode::kNotFound, why == nullptr ? "libnvidia-ml.so.1" : why);
  }
  const auto find = [&](auto& entry, const char* name) {
    entry = reinterpret_cast<std::remove_reference_t<decltype(entry)>>(::dlsym(api->library, name));
    return entry != nullptr;
  };
  // _v3 came with driver 510; _v2 has the same layout for whole GPUs.
  const bool complete = find(api->init, "nvmlInit_v2") && find(api->shutdown, "nvmlShutdown") &&
                        find(api->device_by_uuid, "nvmlDeviceGetHandleByUUID") &&
                        (find(api->compute_processes, "nvmlDeviceGetComputeRunningProcesses_v3") ||
                         find(api->compute_processes, "nvmlDeviceGetComputeRunningProcesses_v2"));
  const int result = complete ? api->init() : 0;
  if (!complete || result != kNvmlSuccess) {
    ::dlclose(api->library);
    return Status(StatusCode::kNotFound,
                  complete ? "nvmlInit_v2 answers " + std::to_string(result)
                           : "libnvidia-ml.so.1 lacks the list of compute processes");
  }
  return std::unique_ptr<Nvml>(new Nvml(std::move(api)));
}

Result<std::vector<pid_t>> Nvml::ComputeProcesses(const Uuid& device) {
  NvmlDevice handle = nullptr;
  const std::string name = DeviceUuidText(device);
  if (const int result = api_->device_by_uuid(name.c_str(), &handle); result != kNvmlSuccess) {
    return Status(StatusCode::kUnavailable, "NVML: " + name + ": error " + std::to_string(result));
  }
  std::vector<ProcessInfo> infos(64);
  // The list may grow between two calls; more room is asked for until it fits.
  for (unsigned room = 64; room <= kMaxProcesses; room *= 4) {
    infos.resize(room);
    unsigned count = room;
    const int result = api_->compute_processes(handle, &count, infos.data());
    if (result == kNvmlInsufficientSize) continue;
    if (result != kNvmlSuccess || count > room) {
      return Status(StatusCode::kUnavailable,
                    "NVML: compute processes: error " + std::to_string(result));
    }
    std::vector<pid_t> pids;
    for (unsigned i = 0; i < count; ++i) pids.push_back(static_cast<pid_t>(infos[i].pid));
    return pids;
  }
  return Status(StatusCode::kUnavailable, "NVML: the list of compute processes has no end");
}

std::string DeviceUuidText(const Nvml::Uuid& uuid) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text = "GPU-";
  for (size_t i = 0; i < uuid.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += kDigits[uuid[i] >> 4];
    text += kDigits[uuid[i] & 15];
  }
  return text;
}

}  // namespace sluice
