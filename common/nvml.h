// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/status.h"

namespace sluice {

/// The part of NVIDIA's management library that Sluice needs, loaded at run time: which processes
/// have a context on a device. Written from the public documentation.
class Nvml {
 public:
  using Uuid = std::array<uint8_t, 16>;

  /// kNotFound when the library is not there or too old.
  static Result<std::unique_ptr<Nvml>> Load();
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  /// All that compute, clients of MPS among them. Process ids as this machine's root namespace sees
  /// them.
  Result<std::vector<pid_t>> ComputeProcesses(const Uuid& device);

 private:
  struct Api;
  explicit Nvml(std::unique_ptr<Api> api);

  std::unique_ptr<Api> api_;
};

/// "GPU-8f2c9f0e-....": the name NVML gives to a device.
std::string DeviceUuidText(const Nvml::Uuid& uuid);

}  // namespace sluice
