// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "tests/contract/lent_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <ctime>

#include "tests/contract/fixture.h"

namespace sluice::contract {

std::string NameOf(CUresult result) {
  const char* name = nullptr;
  if (cuGetErrorName(result, &name) != CUDA_SUCCESS || name == nullptr) {
    return std::to_string(result);
  }
  return name;
}

bool StartContext() {
  CUcontext context = nullptr;
  return cuInit(0) == CUDA_SUCCESS && cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS &&
         cuCtxSetCurrent(context) == CUDA_SUCCESS;
}

CUmemGenericAllocationHandle CreateMemory(size_t bytes) {
  const CUmemAllocationProp prop = DeviceMemory();
  CUmemGenericAllocationHandle handle = 0;
  EXPECT_CU(cuMemCreate(&handle, bytes, &prop, 0));
  return handle;
}

int ExportMemory(CUmemGenericAllocationHandle handle) {
  int fd = -1;
  EXPECT_CU(cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  return fd;
}

CUmemGenericAllocationHandle ImportMemory(int fd) {
  CUmemGenericAllocationHandle handle = 0;
  void* const shareable = reinterpret_cast<void*>(static_cast<intptr_t>(fd));
  const CUresult result =
      cuMemImportFromShareableHandle(&handle, shareable, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  return result == CUDA_SUCCESS ? handle : 0;
}

Mapping::Mapping(CUmemGenericAllocationHandle handle, size_t bytes) : bytes_(bytes) {
  const CUmemAccessDesc access = ReadWrite();
  result_ = cuMemAddressReserve(&address_, bytes, 0, 0, 0);
  if (result_ != CUDA_SUCCESS) return;
  result_ = cuMemMap(address_, bytes, 0, handle, 0);
  if (result_ != CUDA_SUCCESS) return;
  mapped_ = true;
  result_ = cuMemSetAccess(address_, bytes, &access, 1);
}

void Mapping::Unmap() {
  if (mapped_) {
    EXPECT_CU(cuMemUnmap(address_, bytes_));
  }
  if (address_ != 0) {
    EXPECT_CU(cuMemAddressFree(address_, bytes_));
  }
  mapped_ = false;
  address_ = 0;
}

SharedFile::SharedFile(int existing) : fd(existing) {
  constexpr size_t kBytes = 4096;
  if (fd < 0) {
    fd = memfd_create("contract", MFD_ALLOW_SEALING);
    if (ftruncate(fd, kBytes) != 0) abort();
  }
  void* const at = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  words = static_cast<std::atomic<uint64_t>*>(at);
}

SharedFile::~SharedFile() {
  munmap(words, 4096);
  close(fd);
}

bool SendDescriptor(int socket, int fd, sockaddr_un* to) {
  char byte = 0;
  iovec part{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof fd)] = {};
  msghdr message{};
  message.msg_name = to;
  message.msg_namelen = to == nullptr ? 0 : sizeof *to;
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof fd);
  memcpy(CMSG_DATA(header), &fd, sizeof fd);
  return sendmsg(socket, &message, 0) == 1;
}

int ReceiveDescriptor(int socket) {
  char byte = 0;
  iovec part{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  if (recvmsg(socket, &message, MSG_CMSG_CLOEXEC) != 1) return -1;
  const cmsghdr* const header = CMSG_FIRSTHDR(&message);
  if (header == nullptr || header->cmsg_type != SCM_RIGHTS) return -1;
  int fd = -1;
  memcpy(&fd, CMSG_DATA(header), sizeof fd);
  return fd;
}

size_t Slack() { return RealDriver() ? size_t{16} << 20 : 0; }

uint64_t NowNs() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

}  // namespace sluice::contract
