// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "common/oracle_page.h"

namespace sluice::simgpu {

/// What the executor has mapped: device memory at the device addresses, registered host memory
/// wherever it fits. The control thread changes it while the run thread runs operations; each call
/// locks. The lock is never held while an operation runs, so the fault handler may take it.
class Mappings {
 public:
  /// `client_pid`: whose units the oracle leaves accessible. Reads SLUICE_ORACLE.
  explicit Mappings(int32_t client_pid);

  /// These return an empty string or what went wrong.
  std::string MapDevice(uint64_t address, uint64_t bytes, int fd, uint64_t offset);
  std::string Protect(uint64_t address, uint64_t bytes, uint64_t access);
  std::string UnmapDevice(uint64_t address, uint64_t bytes);
  std::string MapHost(uint64_t client_address, uint64_t bytes, int fd, uint64_t offset,
                      bool writable);
  std::string UnmapHost(uint64_t client_address);

  /// Where the executor finds `bytes` at a device or registered host address; null if the address
  /// is neither. A device address is returned as it is: touching it tells whether it is mapped.
  unsigned char* Resolve(uint64_t address, uint64_t bytes);

  /// Whether the address lies in registered host memory.
  bool IsHost(uint64_t address);

  /// Takes the rights away from every oracle unit that the client does not hold and gives them back
  /// for those it does. Cheap when nothing changed.
  void ApplyOracle();

  /// For the fault handler: if `address` lies in a unit that the oracle protects, makes the unit
  /// accessible again, stores its pool offset and returns true.
  bool LiftOracle(uint64_t address, uint64_t* pool_offset);

 private:
  struct Device {
    uint64_t bytes;
    uint64_t inode;
    int protection;
    std::vector<bool> hidden;  // per oracle unit
  };
  struct Host {
    uint64_t bytes;
    unsigned char* local;
  };
  void OpenOracle();

  std::mutex mutex_;
  std::map<uint64_t, Device> device_;
  std::map<uint64_t, Host> host_;
  int32_t client_pid_;
  const OraclePage* oracle_ = nullptr;
  std::string oracle_path_;
  uint64_t oracle_seen_ = 0;
  bool oracle_stale_ = true;
};

}  // namespace sluice::simgpu
