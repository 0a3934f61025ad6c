// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "simgpu/module/kernel_abi.h"

namespace sluice::simgpu {

/// A kernel that can be launched. Never moves once made, so the run thread may keep a pointer.
struct Function {
  std::string name;
  const SimgpuKernel* kernel = nullptr;
  std::vector<uint32_t> offsets;  // of each parameter in the packed arguments
  uint32_t arg_bytes = 0;
  std::optional<uint32_t> duration;  // place of the parameter that says how long a launch lasts
};

/// The loaded kernel objects of a context.
class Modules {
 public:
  /// Loads the ELF object in `fd` and takes the descriptor. Returns an empty string or what is
  /// wrong.
  std::string Load(int fd, uint64_t* module);
  bool Unload(uint64_t module);
  /// Null with `*why` set when the module has no such kernel.
  const Function* Find(uint64_t module, const std::string& name, uint64_t* id, std::string* why);
  const Function* Get(uint64_t id);

 private:
  struct Loaded {
    void* handle;
    int fd;
  };
  std::mutex mutex_;
  std::map<uint64_t, Loaded> loaded_;
  std::map<std::pair<uint64_t, std::string>, uint64_t> by_name_;
  std::deque<Function> functions_;
  uint64_t next_module_ = 1;
};

}  // namespace sluice::simgpu
