// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>
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
  /// `home`: number of the GPU that the memory lies on.
  std::string MapDevice(uint64_t address, uint64_t bytes, int fd, uint64_t offset, uint64_t home);
  std::string Protect(uint64_t address, uint64_t bytes, uint64_t access);
  std::string UnmapDevice(uint64_t address, uint64_t bytes);
  std::string MapHost(uint64_t client_address, uint64_t bytes, int fd, uint64_t offset,
                      bool writable);
  std::string UnmapHost(uint64_t client_address);
  /// Memory of another context that copies may reach and kernels may not: mapped elsewhere.
  std::string MapShadow(uint64_t address, uint64_t bytes, int fd, uint64_t offset, uint64_t home);
  std::string ProtectShadow(uint64_t address, uint64_t bytes, uint64_t access);
  std::string UnmapShadow(uint64_t address);

  /// Where the executor finds `bytes` at a device or registered host address; null if the address
  /// is neither. A device address is returned as it is: touching it tells whether it is mapped.
  unsigned char* Resolve(uint64_t address, uint64_t bytes);
  /// The same for a copy, which also reaches shadows.
  unsigned char* ResolveForCopy(uint64_t address, uint64_t bytes);

  /// Number of the GPU that the memory at a device address lies on; this executor's own if it is
  /// not known.
  uint64_t HomeOf(uint64_t address);
  uint64_t own_gpu() const { return own_gpu_.load(); }
  void SetOwnGpu(uint64_t number) { own_gpu_.store(number); }

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
    uint64_t home;
    std::vector<bool> hidden;  // per oracle unit
  };
  struct Shadow {
    uint64_t bytes;
    uint64_t home;
    unsigned char* local;
  };
  struct Host {
    uint64_t bytes;
    unsigned char* local;
  };
  void OpenOracle();
  /// The one that the address lies in, null if there is none. With the lock held.
  const std::pair<const uint64_t, Shadow>* FindShadow(uint64_t address) const;

  std::atomic<uint64_t> own_gpu_{0};
  std::mutex mutex_;
  std::map<uint64_t, Device> device_;
  std::map<uint64_t, Host> host_;
  std::map<uint64_t, Shadow> shadow_;
  int32_t client_pid_;
  const OraclePage* oracle_ = nullptr;
  std::string oracle_path_;
  uint64_t oracle_seen_ = 0;
  bool oracle_stale_ = true;
};

}  // namespace sluice::simgpu
