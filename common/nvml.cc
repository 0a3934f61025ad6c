// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "common/nvml.h"

#include <dlfcn.h>

#include <utility>

#include "common/cuda/nvml_abi.h"

namespace sluice {
namespace {

// Far above what one GPU ever runs: an answer beyond it is a broken library, not a longer list.
constexpr unsigned kMaxProcesses = 1 << 16;

}  // namespace

struct Nvml::Api {
  using List = int (*)(nvmlDevice_t, unsigned*, nvmlProcessInfo_v2_t*);
  /// `may_lack`: a device that has no such list has nobody in it.
  static Status Append(List list, nvmlDevice_t device, bool may_lack, std::vector<pid_t>* pids);

  void* library = nullptr;
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  int (*device_by_uuid)(const char*, nvmlDevice_t*) = nullptr;
  List compute_processes = nullptr;
  // Under MPS the clients are in a list of their own. Null: a driver without it.
  List mps_processes = nullptr;
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
  static_cast<void>(find(api->mps_processes, "nvmlDeviceGetMPSComputeRunningProcesses_v3") ||
                    find(api->mps_processes, "nvmlDeviceGetMPSComputeRunningProcesses_v2"));
  const int result = complete ? api->init() : 0;
  if (!complete || result != NVML_SUCCESS) {
    ::dlclose(api->library);
    return Status(StatusCode::kNotFound,
                  complete ? "nvmlInit_v2 answers " + std::to_string(result)
                           : "libnvidia-ml.so.1 lacks the list of compute processes");
  }
  return std::unique_ptr<Nvml>(new Nvml(std::move(api)));
}

Result<std::vector<pid_t>> Nvml::ComputeProcesses(const Uuid& device) {
  nvmlDevice_t handle = nullptr;
  const std::string name = DeviceUuidText(device);
  if (const int result = api_->device_by_uuid(name.c_str(), &handle); result != NVML_SUCCESS) {
    return Status(StatusCode::kUnavailable, "NVML: " + name + ": error " + std::to_string(result));
  }
  std::vector<pid_t> pids;
  if (Status s = Api::Append(api_->compute_processes, handle, false, &pids); !s.ok()) return s;
  if (api_->mps_processes == nullptr) return pids;
  if (Status s = Api::Append(api_->mps_processes, handle, true, &pids); !s.ok()) return s;
  return pids;
}

Status Nvml::Api::Append(List list, nvmlDevice_t device, bool may_lack, std::vector<pid_t>* pids) {
  std::vector<nvmlProcessInfo_v2_t> infos;
  // The list may grow between two calls; more room is asked for until it fits.
  for (unsigned room = 64; room <= kMaxProcesses; room *= 4) {
    infos.resize(room);
    unsigned count = room;
    const int result = list(device, &count, infos.data());
    if (result == NVML_ERROR_INSUFFICIENT_SIZE) continue;
    if (may_lack && result == NVML_ERROR_NOT_SUPPORTED) return {};
    if (result != NVML_SUCCESS || count > room) {
      return Status(StatusCode::kUnavailable, "NVML: processes: error " + std::to_string(result));
    }
    for (unsigned i = 0; i < count; ++i) pids->push_back(static_cast<pid_t>(infos[i].pid));
    return {};
  }
  return Status(StatusCode::kUnavailable, "NVML: the list of processes has no end");
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
