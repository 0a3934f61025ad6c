// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <sys/un.h>

#include <atomic>
#include <cstdint>
#include <string>

#include "common/cuda/driver_api.h"

/// What tests about memory between processes share, as a lender and a borrower of memory have it.
namespace sluice::contract {

/// "CUDA_SUCCESS" and so on, by the driver's own account.
std::string NameOf(CUresult result);

/// Makes the primary context current. For the roles of other processes, which have no fixture.
bool StartContext();

/// A granule or several of physical memory, to be exported.
CUmemGenericAllocationHandle CreateMemory(size_t bytes);
int ExportMemory(CUmemGenericAllocationHandle handle);
/// 0: it was refused. The descriptor stays open.
CUmemGenericAllocationHandle ImportMemory(int fd);

/// A handle mapped for reading and writing, until it goes out of scope.
class Mapping {
 public:
  Mapping(CUmemGenericAllocationHandle handle, size_t bytes);
  ~Mapping() { Unmap(); }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  /// What the first call that failed answered.
  CUresult result() const { return result_; }
  CUdeviceptr address() const { return address_; }
  void Unmap();

 private:
  size_t bytes_;
  CUdeviceptr address_ = 0;
  bool mapped_ = false;
  CUresult result_ = CUDA_SUCCESS;
};

/// Shared memory as two processes have it: a sealed file that both map.
class SharedFile {
 public:
  explicit SharedFile(int existing = -1);
  ~SharedFile();
  SharedFile(const SharedFile&) = delete;
  SharedFile& operator=(const SharedFile&) = delete;
  CUdeviceptr address(int i) const { return reinterpret_cast<CUdeviceptr>(words + i); }

  int fd;
  std::atomic<uint64_t>* words;
};

/// A descriptor over a socket, to a name where it is not connected. Receiving gives -1 when the
/// other side is gone, or when nothing is there and the socket does not wait.
bool SendDescriptor(int socket, int fd, sockaddr_un* to = nullptr);
int ReceiveDescriptor(int socket);

/// How far free memory may be off what is expected: a real driver takes some for itself at times.
size_t Slack();

/// Of a clock that all processes share.
uint64_t NowNs();

}  // namespace sluice::contract
