// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/status.h"

namespace sluice {

/// The part of NVIDIA's management library that Sluice needs, loaded at run time: which devices
/// there are, which processes have a context on one, and what the driver reports of broken ones.
/// Written from the public documentation. For one thread; the library itself may be used by others,
/// too.
class Nvml {
 public:
  using Uuid = std::array<uint8_t, 16>;

  struct Gpu {
    std::string uuid;
    std::string name;
    uint64_t bytes = 0;  // all of its memory
    uint32_t index = 0;  // the driver's number of it
  };
  /// One that NVML counts and cannot tell of: fallen off the bus, or forbidden.
  struct Silent {
    uint32_t index = 0;
    std::string why;
  };
  struct Listed {
    uint32_t count = 0;     // of all; every index is below it
    std::vector<Gpu> gpus;  // that answer, by index
    std::vector<Silent> silent;
  };
  /// What the driver reports as an XID error.
  struct Error {
    std::string uuid;  // empty: of a device that the library cannot name any more
    uint64_t xid = 0;
  };

  /// kNotFound when the library is not there or too old.
  static Result<std::unique_ptr<Nvml>> Load();
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  /// All that compute, clients of MPS among them. Process ids as this machine's root namespace sees
  /// them.
  Result<std::vector<pid_t>> ComputeProcesses(const Uuid& device);

  /// All devices. One that does not answer takes none of the others with it. kUnavailable: NVML's
  /// own error, also where there are devices and none answers; or a library without the lists.
  Result<Listed> Gpus();

  /// "580.65.06"; kUnavailable: NVML's own error, or a library that does not say.
  Result<std::string> DriverVersion();

  /// Bytes of the device that are in use, whoever has them. kUnavailable: NVML's own error.
  Result<uint64_t> UsedBytes(const Uuid& device);

  /// UUID of the GPU of which this is a MIG device, by its UUID. kNotFound: it is none, or the
  /// library does not know.
  Result<std::string> ParentOfMig(const std::string& uuid);

  /// Whether the GPU is in MIG mode now: its memory is then that of its parts, and what asks for
  /// the whole GPU gets none of it. A GPU that has no such mode, or a library that does not know
  /// it: no. kUnavailable: NVML's own error.
  Result<bool> InMigMode(const std::string& uuid);

  /// Whether the device answers at all; kUnavailable: NVML's own error. An answer is no proof of
  /// health.
  Status Probe(const std::string& uuid);

  /// From now on NextError tells of errors of these devices. kUnavailable: this library or one of
  /// the devices cannot tell (the text says which); the others are watched nevertheless.
  Status WatchErrors(const std::vector<Gpu>& gpus);
  /// Waits for the next one; nothing if there was none for so long. kUnavailable: NVML's own error,
  /// or WatchErrors did not come first.
  Result<std::optional<Error>> NextError(unsigned timeout_ms);

 private:
  struct Api;
  explicit Nvml(std::unique_ptr<Api> api);

  std::unique_ptr<Api> api_;
};

/// "GPU-8f2c9f0e-....": the name NVML gives to a device.
std::string DeviceUuidText(const Nvml::Uuid& uuid);

}  // namespace sluice
