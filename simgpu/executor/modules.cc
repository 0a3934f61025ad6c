// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "simgpu/executor/modules.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include "simgpu/streams/control.h"

namespace sluice::simgpu {

std::string Modules::Load(int fd, uint64_t* module) {
  const std::lock_guard lock(mutex_);
  // The loader recognises objects by their path, so a descriptor number must not come back with
  // another object behind it: each module gets a higher one.
  const int unique = fcntl(fd, F_DUPFD_CLOEXEC, static_cast<int>(256 + next_module_));
  close(fd);
  if (unique < 0) return "no descriptor for the module";
  const std::string path = "/proc/self/fd/" + std::to_string(unique);
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* why = dlerror();
    close(unique);
    return why == nullptr ? "dlopen failed" : why;
  }
  *module = next_module_++;
  loaded_[*module] = {handle, unique};
  return {};
}

bool Modules::Unload(uint64_t module) {
  const std::lock_guard lock(mutex_);
  const auto found = loaded_.find(module);
  if (found == loaded_.end()) return false;
  for (auto it = by_name_.begin(); it != by_name_.end();) {
    if (it->first.first == module) {
      functions_[it->second].kernel = nullptr;
      it = by_name_.erase(it);
    } else {
      ++it;
    }
  }
  dlclose(found->second.handle);
  close(found->second.fd);
  loaded_.erase(found);
  return true;
}

const Function* Modules::Find(uint64_t module, const std::string& name, uint64_t* id,
                              std::string* why) {
  const std::lock_guard lock(mutex_);
  const auto found = loaded_.find(module);
  if (found == loaded_.end()) {
    *why = "no such module";
    return nullptr;
  }
  const auto known = by_name_.find({module, name});
  if (known != by_name_.end()) {
    *id = known->second;
    return &functions_[*id];
  }
  const void* symbol = dlsym(found->second.handle, (SIMGPU_KERNEL_PREFIX + name).c_str());
  if (symbol == nullptr) {
    *why = "the module has no kernel '" + name + "'";
    return nullptr;
  }
  const auto* kernel = static_cast<const SimgpuKernel*>(symbol);
  if (kernel->abi != SIMGPU_KERNEL_ABI || kernel->param_count > kMaxParams) {
    *why = "kernel '" + name + "' was compiled for another version of the simulated GPU";
    return nullptr;
  }
  Function function;
  function.name = name;
  function.kernel = kernel;
  for (uint32_t i = 0; i < kernel->param_count; ++i) {
    const uint32_t offset = AlignParam(function.arg_bytes, kernel->param_sizes[i]);
    function.offsets.push_back(offset);
    function.arg_bytes = offset + kernel->param_sizes[i];
  }
  if (const void* place = dlsym(found->second.handle, (SIMGPU_DURATION_PREFIX + name).c_str())) {
    function.duration = *static_cast<const uint32_t*>(place);
    if (*function.duration >= kernel->param_count ||
        kernel->param_sizes[*function.duration] != sizeof(uint64_t)) {
      *why = "the duration of kernel '" + name + "' must be a parameter of 8 bytes, not number " +
             std::to_string(*function.duration);
      return nullptr;
    }
  }
  *id = functions_.size();
  functions_.push_back(std::move(function));
  by_name_[{module, name}] = *id;
  return &functions_.back();
}

const Function* Modules::Get(uint64_t id) {
  const std::lock_guard lock(mutex_);
  return id < functions_.size() && functions_[id].kernel != nullptr ? &functions_[id] : nullptr;
}

}  // namespace sluice::simgpu
