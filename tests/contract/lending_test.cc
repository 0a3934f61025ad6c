// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
//
// What a lender of memory relies on: it needs no context of its own, and memory lives as long as
// anybody refers to it, whatever becomes of the one who made it.
#include <dlfcn.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/contract/fixture.h"
#include "tests/contract/lent_memory.h"
#include "tests/contract/nvml.h"

namespace sluice::contract {
namespace {

constexpr size_t kMiB = 1u << 20;

/// Imports what is passed, fills it with the number it is told, and reads its last word.
int Borrow() {
  if (!StartContext()) return 1;
  const size_t bytes = ReadFromTest();
  const auto value = static_cast<unsigned>(ReadFromTest());
  const uint64_t begin = NowNs();
  const CUmemGenericAllocationHandle handle = ImportMemory(kPassedFd);
  const uint64_t imported = NowNs();
  close(kPassedFd);
  uint32_t last = 0;
  {
    Mapping mapping(handle, bytes);
    if (handle == 0 || mapping.result() != CUDA_SUCCESS) return 1;
    if (value != 0) cuMemsetD32_v2(mapping.address(), value, bytes / 4);
    cuMemcpyDtoH_v2(&last, mapping.address() + bytes - 4, sizeof last);
    WriteToTest(last);
    WriteToTest(imported - begin);
    ReadFromTest();
  }
  cuMemRelease(handle);
  return 0;
}
const bool kBorrow = AddRole("borrow", Borrow);

/// The whole size, the last word as the borrower read it.
uint64_t Lend(int fd, size_t bytes, uint32_t value, double* import_us) {
  OtherProcess borrower("borrow", fd);
  borrower.Write(bytes);
  borrower.Write(value);
  const uint64_t last = borrower.Read();
  *import_us = static_cast<double>(borrower.Read()) / 1e3;
  borrower.Write(0);
  EXPECT_EQ(borrower.Join(), 0);
  return last;
}

TEST(Lending, AProcessWithoutAContextCreatesAndExports) {
  ASSERT_CU(cuInit(0));
  for (const size_t mib : {size_t{2}, size_t{16}, size_t{1024}}) {
    if (mib > 16 && !RealDriver()) continue;  // the simulated GPU of these tests is smaller
    const size_t bytes = mib * kMiB;
    const uint64_t begin = NowNs();
    const CUmemGenericAllocationHandle handle = CreateMemory(bytes);
    const uint64_t created = NowNs();
    const int fd = ExportMemory(handle);
    const uint64_t exported = NowNs();
    double import_us = 0;
    EXPECT_EQ(Lend(fd, bytes, 0x5107ce, &import_us), 0x5107ceu);
    EXPECT_EQ(Lend(fd, bytes, 0, &import_us), 0x5107ceu);  // another one reads what the first wrote
    close(fd);
    ASSERT_CU(cuMemRelease(handle));
    const std::string size = std::to_string(mib) + "MiB";
    Measure("create_us." + size, static_cast<double>(created - begin) / 1e3);
    Measure("export_us." + size, static_cast<double>(exported - created) / 1e3);
    Measure("import_us." + size, import_us);
  }
  CUcontext current = nullptr;
  ASSERT_CU(cuCtxGetCurrent(&current));
  EXPECT_EQ(current, nullptr);
  unsigned flags = 0;
  int active = 1;
  ASSERT_CU(cuDevicePrimaryCtxGetState(0, &flags, &active));
  EXPECT_EQ(active, 0);
}

class LendingTest : public ContextTest {
 protected:
  /// What is free, once it no longer changes at every look (a dead process goes in steps).
  bool FreeReturnsTo(size_t bytes) {
    return Eventually([&] { return FreeBytes() + Slack() >= bytes; });
  }
  // Larger than what contexts differ by.
  const size_t bytes_ = (RealDriver() ? 1024 : 16) * kMiB;
};

/// Tells whether an imported handle can be exported once more, and passes it back.
int Reexport() {
  if (!StartContext()) return 1;
  const CUmemGenericAllocationHandle handle = ImportMemory(kPassedFd);
  int fd = -1;
  WriteToTest(
      cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  ReadFromTest();
  return 0;
}
const bool kReexport = AddRole("reexport", Reexport);

TEST_F(LendingTest, AnImportedHandleIsExportedAgain) {
  const CUmemGenericAllocationHandle handle = CreateMemory(bytes_);
  const int fd = ExportMemory(handle);
  OtherProcess other("reexport", fd);
  Answer("export_of_an_imported_handle", NameOf(static_cast<CUresult>(other.Read())));
  other.Write(0);
  EXPECT_EQ(other.Join(), 0);
  close(fd);
  ASSERT_CU(cuMemRelease(handle));
}

/// Makes memory, hands it over a socket and waits to be killed.
int LendAndWait() {
  if (!StartContext()) return 1;
  const size_t bytes = ReadFromTest();
  const CUmemGenericAllocationHandle handle = CreateMemory(bytes);
  const int fd = ExportMemory(handle);
  Mapping mapping(handle, bytes);
  if (mapping.result() != CUDA_SUCCESS ||
      cuMemsetD32_v2(mapping.address(), 77, bytes / 4) != CUDA_SUCCESS ||
      cuCtxSynchronize() != CUDA_SUCCESS || !SendDescriptor(kPassedFd, fd)) {
    return 1;
  }
  ReadFromTest();
  return 0;
}
const bool kLendAndWait = AddRole("lend", LendAndWait);

// What a keeper of descriptors relies on, whose daemon ends: jobs import from them afterwards.
TEST_F(LendingTest, ADescriptorIsImportedAfterItsMakerDied) {
  int sockets[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
  OtherProcess lender("lend", sockets[1]);
  lender.Write(bytes_);
  const int fd = ReceiveDescriptor(sockets[0]);
  ASSERT_GE(fd, 0);
  lender.Kill();
  lender.Join();
  const CUmemGenericAllocationHandle handle = ImportMemory(fd);
  ASSERT_NE(handle, 0u);
  {
    Mapping mapping(handle, bytes_);
    ASSERT_CU(mapping.result());
    EXPECT_EQ(Read32(mapping.address() + bytes_ - 4), 77u);
    // And the handle of a mapping of what was imported is as good as the one it was made of.
    CUmemGenericAllocationHandle again = 0;
    ASSERT_CU(cuMemRelease(handle));
    ASSERT_CU(cuMemRetainAllocationHandle(&again, reinterpret_cast<void*>(mapping.address())));
    Mapping second(again, bytes_);
    EXPECT_CU(second.result());
    EXPECT_EQ(Read32(second.address() + bytes_ - 4), 77u);
    ASSERT_CU(cuMemRelease(again));
  }
  double import_us = 0;
  EXPECT_EQ(Lend(fd, bytes_, 0, &import_us), 77u) << "also in another process";
  close(fd);
  for (const int socket : sockets) close(socket);
}

TEST_F(LendingTest, ADescriptorAloneKeepsMemory) {
  const size_t before = FreeBytes();
  const CUmemGenericAllocationHandle handle = CreateMemory(bytes_);
  const int fd = ExportMemory(handle);
  ASSERT_CU(cuMemRelease(handle));
  AnswerIf("kept_by_a_descriptor_alone", FreeBytes() + bytes_ <= before + Slack());
  const CUmemGenericAllocationHandle again = ImportMemory(fd);
  AnswerIf("imported_after_its_last_handle", again != 0);
  if (again != 0) {
    EXPECT_CU(cuMemRelease(again));
  }
  close(fd);
  EXPECT_TRUE(FreeReturnsTo(before)) << "nobody refers to it any more";
}

TEST_F(LendingTest, WhatNewMemoryContains) {
  CUmemGenericAllocationHandle handle = CreateMemory(bytes_);
  {
    Mapping mapping(handle, bytes_);
    ASSERT_CU(mapping.result());
    ASSERT_CU(cuMemsetD32_v2(mapping.address(), 0xdead, bytes_ / 4));
    ASSERT_CU(cuCtxSynchronize());
  }
  ASSERT_CU(cuMemRelease(handle));
  handle = CreateMemory(bytes_);
  std::vector<uint32_t> words(bytes_ / 4, 1);
  {
    Mapping mapping(handle, bytes_);
    ASSERT_CU(mapping.result());
    ASSERT_CU(cuMemcpyDtoH_v2(words.data(), mapping.address(), bytes_));
  }
  size_t other = 0;
  size_t old = 0;
  for (const uint32_t word : words) {
    other += word != 0;
    old += word == 0xdead;
  }
  AnswerIf("new_memory_is_zero", other == 0);
  AnswerIf("new_memory_shows_what_was_freed", old != 0);
  ASSERT_CU(cuMemRelease(handle));
}

/// What the management library says a process uses; 0 when it does not know the process, as in a
/// container with numbers of its own.
uint64_t ChargedBytes(nvmlDevice_t device, int pid) {
  nvmlProcessInfo_v2_t infos[64];
  unsigned count = 64;
  EXPECT_EQ(NVML(nvmlDeviceGetComputeRunningProcesses_v3)(device, &count, infos), NVML_SUCCESS);
  for (unsigned i = 0; i < count; ++i) {
    if (infos[i].pid == static_cast<unsigned>(pid)) return infos[i].usedGpuMemory;
  }
  return 0;
}

TEST_F(LendingTest, WhomTheManagementLibraryCharges) {
  nvmlDevice_t device = nullptr;
  ASSERT_EQ(NVML(nvmlInit_v2)(), NVML_SUCCESS);
  ASSERT_EQ(NVML(nvmlDeviceGetHandleByIndex_v2)(0, &device), NVML_SUCCESS);
  const uint64_t alone = ChargedBytes(device, getpid());
  AnswerIf("it_knows_the_process", alone != 0);
  const CUmemGenericAllocationHandle handle = CreateMemory(bytes_);
  const int fd = ExportMemory(handle);
  const uint64_t with_handle = ChargedBytes(device, getpid());
  OtherProcess borrower("borrow", fd);
  borrower.Write(bytes_);
  borrower.Write(1);
  EXPECT_EQ(borrower.Read(), 1u);
  borrower.Read();
  const uint64_t with_mapping = ChargedBytes(device, borrower.pid());
  if (alone != 0) {
    // Its context is about as large as the one here; what was lent is far larger than the rest.
    AnswerIf("the_creator_is_charged", with_handle >= alone + bytes_);
    AnswerIf("the_borrower_is_charged", with_mapping >= alone + bytes_ / 2);
  }
  borrower.Write(0);
  EXPECT_EQ(borrower.Join(), 0);
  close(fd);
  ASSERT_CU(cuMemRelease(handle));
  EXPECT_EQ(NVML(nvmlShutdown)(), NVML_SUCCESS);
}

TEST_F(LendingTest, NothingRevokesMemoryOfAnExporterThatDied) {
  const size_t before = FreeBytes();
  int sockets[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
  OtherProcess lender("lend", sockets[1]);
  lender.Write(bytes_);
  const int fd = ReceiveDescriptor(sockets[0]);
  ASSERT_GE(fd, 0);
  const CUmemGenericAllocationHandle handle = ImportMemory(fd);
  ASSERT_NE(handle, 0u);
  close(fd);
  Mapping mapping(handle, bytes_);
  ASSERT_CU(mapping.result());
  lender.Kill();
  lender.Join();
  EXPECT_EQ(Read32(mapping.address() + bytes_ - 4), 77u);
  ASSERT_CU(Fill(mapping.address(), 78, 1));
  EXPECT_EQ(Read32(mapping.address()), 78u);
  {
    Mapping second(handle, bytes_);  // the handle is as good as before, too
    ASSERT_CU(second.result());
    EXPECT_EQ(Read32(second.address()), 78u);
  }
  EXPECT_LE(FreeBytes() + bytes_, before + Slack());
  mapping.Unmap();
  ASSERT_CU(cuMemRelease(handle));
  EXPECT_TRUE(FreeReturnsTo(before));
  for (const int socket : sockets) close(socket);
}

}  // namespace
}  // namespace sluice::contract
