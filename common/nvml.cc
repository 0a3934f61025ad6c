// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "common/nvml.h"

#include <dlfcn.h>

#include <utility>

#include "common/cuda/nvml_abi.h"

namespace sluice {
namespace {

constexpr unsigned kMaxGpus = 1024;
// A device's UUID or name; NVML's own bounds are 96.
constexpr unsigned kMaxText = 96;

Status Failed(const std::string& what, int result) {
  return Status(StatusCode::kUnavailable, "NVML: " + what + ": error " + std::to_string(result));
}

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

  // Who only asks for processes can do without these.
  using Text = int (*)(nvmlDevice_t, char*, unsigned);
  int (*count)(unsigned*) = nullptr;
  int (*device_by_index)(unsigned, nvmlDevice_t*) = nullptr;
  Text uuid = nullptr;
  Text name = nullptr;
  int (*memory)(nvmlDevice_t, nvmlMemory_t*) = nullptr;
  bool lists_devices = false;
  // Null: a library without it.
  int (*driver_version)(char*, unsigned) = nullptr;
  int (*parent_of_mig)(nvmlDevice_t, nvmlDevice_t*) = nullptr;
  int (*mig_mode)(nvmlDevice_t, unsigned*, unsigned*) = nullptr;

  int (*make_events)(nvmlEventSet_t*) = nullptr;
  int (*free_events)(nvmlEventSet_t) = nullptr;
  int (*register_events)(nvmlDevice_t, unsigned long long, nvmlEventSet_t) = nullptr;
  int (*wait_event)(nvmlEventSet_t, nvmlEventData_v2_t*, unsigned) = nullptr;
  bool tells_errors = false;
  nvmlEventSet_t events = nullptr;
};

Nvml::Nvml(std::unique_ptr<Api> api) : api_(std::move(api)) {}

Nvml::~Nvml() {
  if (api_->events != nullptr) api_->free_events(api_->events);
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
  api->lists_devices = find(api->count, "nvmlDeviceGetCount_v2") &&
                       find(api->device_by_index, "nvmlDeviceGetHandleByIndex_v2") &&
                       find(api->uuid, "nvmlDeviceGetUUID") &&
                       find(api->name, "nvmlDeviceGetName") &&
                       find(api->memory, "nvmlDeviceGetMemoryInfo");
  static_cast<void>(find(api->driver_version, "nvmlSystemGetDriverVersion"));
  static_cast<void>(find(api->parent_of_mig, "nvmlDeviceGetDeviceHandleFromMigDeviceHandle"));
  static_cast<void>(find(api->mig_mode, "nvmlDeviceGetMigMode"));
  api->tells_errors = find(api->make_events, "nvmlEventSetCreate") &&
                      find(api->free_events, "nvmlEventSetFree") &&
                      find(api->register_events, "nvmlDeviceRegisterEvents") &&
                      find(api->wait_event, "nvmlEventSetWait_v2") && api->lists_devices;
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
    return Failed(name, result);
  }
  std::vector<pid_t> pids;
  if (Status s = Api::Append(api_->compute_processes, handle, false, &pids); !s.ok()) return s;
  if (api_->mps_processes == nullptr) return pids;
  if (Status s = Api::Append(api_->mps_processes, handle, true, &pids); !s.ok()) return s;
  return pids;
}

Result<uint64_t> Nvml::UsedBytes(const Uuid& device) {
  nvmlDevice_t handle = nullptr;
  nvmlMemory_t memory = {};
  const std::string name = DeviceUuidText(device);
  int result = api_->device_by_uuid(name.c_str(), &handle);
  if (result == NVML_SUCCESS && api_->memory == nullptr) result = NVML_ERROR_NOT_SUPPORTED;
  if (result == NVML_SUCCESS) result = api_->memory(handle, &memory);
  if (result != NVML_SUCCESS) return Failed(name, result);
  return memory.used;
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
      return Failed("processes", result);
    }
    for (unsigned i = 0; i < count; ++i) pids->push_back(static_cast<pid_t>(infos[i].pid));
    return {};
  }
  return Status(StatusCode::kUnavailable, "NVML: the list of processes has no end");
}

Result<Nvml::Listed> Nvml::Gpus() {
  if (!api_->lists_devices) {
    return Status(StatusCode::kUnavailable, "libnvidia-ml.so.1 lacks the list of devices");
  }
  unsigned count = 0;
  if (const int result = api_->count(&count); result != NVML_SUCCESS || count > kMaxGpus) {
    return Failed("number of devices", result);
  }
  Listed listed;
  listed.count = count;
  for (unsigned i = 0; i < count; ++i) {
    nvmlDevice_t handle = nullptr;
    char uuid[kMaxText] = {};
    char name[kMaxText] = {};
    nvmlMemory_t memory = {};
    int result = api_->device_by_index(i, &handle);
    if (result == NVML_SUCCESS) result = api_->uuid(handle, uuid, sizeof uuid);
    if (result == NVML_SUCCESS) result = api_->name(handle, name, sizeof name);
    if (result == NVML_SUCCESS) result = api_->memory(handle, &memory);
    if (result == NVML_SUCCESS) {
      listed.gpus.push_back({uuid, name, memory.total, i});
    } else {
      listed.silent.push_back({i, Failed("device " + std::to_string(i), result).message()});
    }
  }
  if (listed.gpus.empty() && !listed.silent.empty()) {
    return Status(StatusCode::kUnavailable, listed.silent.front().why);
  }
  return listed;
}

Result<std::string> Nvml::DriverVersion() {
  if (api_->driver_version == nullptr) {
    return Status(StatusCode::kUnavailable, "libnvidia-ml.so.1 does not tell the driver's version");
  }
  char version[kMaxText] = {};
  const int result = api_->driver_version(version, sizeof version);
  if (result != NVML_SUCCESS) return Failed("version of the driver", result);
  return std::string(version);
}

Result<std::string> Nvml::ParentOfMig(const std::string& uuid) {
  nvmlDevice_t part = nullptr;
  nvmlDevice_t whole = nullptr;
  char name[kMaxText] = {};
  const bool known = api_->parent_of_mig != nullptr && api_->lists_devices &&
                     api_->device_by_uuid(uuid.c_str(), &part) == NVML_SUCCESS &&
                     api_->parent_of_mig(part, &whole) == NVML_SUCCESS &&
                     api_->uuid(whole, name, sizeof name) == NVML_SUCCESS;
  if (!known) return Status(StatusCode::kNotFound, "NVML: " + uuid + ": no MIG device");
  return std::string(name);
}

Result<bool> Nvml::InMigMode(const std::string& uuid) {
  if (api_->mig_mode == nullptr) return false;
  nvmlDevice_t handle = nullptr;
  unsigned current = 0;
  unsigned pending = 0;
  int result = api_->device_by_uuid(uuid.c_str(), &handle);
  if (result == NVML_SUCCESS) result = api_->mig_mode(handle, &current, &pending);
  if (result == NVML_ERROR_NOT_SUPPORTED) return false;
  if (result != NVML_SUCCESS) return Failed("MIG mode of " + uuid, result);
  return current == NVML_DEVICE_MIG_ENABLE;
}

Status Nvml::Probe(const std::string& uuid) {
  nvmlDevice_t handle = nullptr;
  nvmlMemory_t memory = {};
  int result = api_->device_by_uuid(uuid.c_str(), &handle);
  if (result == NVML_SUCCESS && api_->lists_devices) result = api_->memory(handle, &memory);
  return result == NVML_SUCCESS ? Status() : Failed(uuid, result);
}

Status Nvml::WatchErrors(const std::vector<Gpu>& gpus) {
  if (!api_->tells_errors) {
    return Status(StatusCode::kUnavailable, "libnvidia-ml.so.1 lacks events");
  }
  if (api_->events == nullptr) {
    if (const int result = api_->make_events(&api_->events); result != NVML_SUCCESS) {
      api_->events = nullptr;
      return Failed("events", result);
    }
  }
  Status status;
  for (const Gpu& gpu : gpus) {
    nvmlDevice_t handle = nullptr;
    int result = api_->device_by_uuid(gpu.uuid.c_str(), &handle);
    if (result == NVML_SUCCESS) {
      result = api_->register_events(handle, nvmlEventTypeXidCriticalError, api_->events);
    }
    if (result != NVML_SUCCESS) status = Failed("events of " + gpu.uuid, result);
  }
  return status;
}

Result<std::optional<Nvml::Error>> Nvml::NextError(unsigned timeout_ms) {
  if (api_->events == nullptr) {
    return Status(StatusCode::kUnavailable, "NVML: events: none are watched");
  }
  nvmlEventData_v2_t event = {};
  const int result = api_->wait_event(api_->events, &event, timeout_ms);
  if (result == NVML_ERROR_TIMEOUT) return std::optional<Error>();
  if (result != NVML_SUCCESS) return Failed("events", result);
  Error error;
  error.xid = event.eventData;
  char uuid[kMaxText] = {};
  if (api_->uuid(event.device, uuid, sizeof uuid) == NVML_SUCCESS) error.uuid = uuid;
  return std::optional<Error>(std::move(error));
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
