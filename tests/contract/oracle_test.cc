// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
//
// The ownership oracle: kernels that touch pool bytes their process does not hold are counted and
// run on.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>

#include "common/oracle_page.h"
#include "tests/contract/fixture.h"

namespace sluice::contract {
namespace {

class Oracle : public ContextTest {
 protected:
  void SetUp() override {
    OnlySimulated("a real driver has no oracle");
    path_ = std::string(getenv("SLUICE_SIMGPU")) + "/oracle";
    setenv("SLUICE_ORACLE", path_.c_str(), 1);
    ContextTest::SetUp();
    handle_bytes_ = 4 * Granularity();
    unit_ = Granularity();
    ASSERT_CU(cuMemAddressReserve(&pool_, 2 * handle_bytes_, 0, 0, 0));
    const CUmemAllocationProp prop = DeviceMemory();
    const CUmemAccessDesc access = ReadWrite();
    const int fd = open(path_.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600);
    ASSERT_EQ(ftruncate(fd, sizeof(OraclePage)), 0);
    page_ = static_cast<OraclePage*>(
        mmap(nullptr, sizeof(OraclePage), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
    close(fd);
    for (uint32_t i = 0; i < 2; ++i) {
      ASSERT_CU(cuMemCreate(&handle_[i], handle_bytes_, &prop, 0));
      ASSERT_CU(cuMemMap(pool_ + i * handle_bytes_, handle_bytes_, 0, handle_[i], 0));
      int exported = -1;
      ASSERT_CU(cuMemExportToShareableHandle(&exported, handle_[i],
                                             CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
      struct stat info;
      ASSERT_EQ(fstat(exported, &info), 0);
      page_->handle_inode[i] = info.st_ino;
      close(exported);
    }
    ASSERT_CU(cuMemSetAccess(pool_, 2 * handle_bytes_, &access, 1));
    page_->unit_bytes = unit_;
    page_->handle_bytes = handle_bytes_;
    page_->handle_count = 2;
    page_->unit_count = 8;
    __atomic_store_n(&page_->magic, kOracleMagic, __ATOMIC_RELEASE);
    before_ = Stat("oracle_violations");
  }
  void TearDown() override {
    if (RealDriver()) return;
    EXPECT_CU(cuMemUnmap(pool_, 2 * handle_bytes_));
    EXPECT_CU(cuMemAddressFree(pool_, 2 * handle_bytes_));
    for (const CUmemGenericAllocationHandle h : handle_) EXPECT_CU(cuMemRelease(h));
    ContextTest::TearDown();
    munmap(page_, sizeof(OraclePage));
    unlink(path_.c_str());
    unsetenv("SLUICE_ORACLE");
  }
  void Give(uint32_t unit, int pid) {
    page_->unit[unit].holder.store(static_cast<uint32_t>(pid));
    page_->unit[unit].epoch.fetch_add(1);
    page_->changes.fetch_add(1, std::memory_order_release);
  }
  uint64_t Violations() { return Stat("oracle_violations") - before_; }
  CUdeviceptr Unit(uint32_t unit) const { return pool_ + unit * unit_; }

  std::string path_;
  size_t handle_bytes_ = 0;
  size_t unit_ = 0;
  CUdeviceptr pool_ = 0;
  CUmemGenericAllocationHandle handle_[2] = {};
  OraclePage* page_ = nullptr;
  uint64_t before_ = 0;
};

TEST_F(Oracle, LetsAHolderWork) {
  Give(2, getpid());
  Give(3, getpid());
  ASSERT_CU(Fill(Unit(2), 1, 2 * unit_ / 4));
  EXPECT_EQ(Read32(Unit(3)), 1u);
  EXPECT_EQ(Violations(), 0u);
}

TEST_F(Oracle, CountsAStrangerAndRunsOn) {
  Give(4, getpid());
  // Seeded bug: the kernel runs on into a unit that nobody gave to this process.
  ASSERT_CU(Fill(Unit(4), 7, 2 * unit_ / 4));
  ASSERT_CU(cuCtxSynchronize());
  EXPECT_EQ(Violations(), 1u);
  EXPECT_EQ(Read32(Unit(5)), 7u);  // the run went on
  EXPECT_EQ(Stat("pool_offset"), 5 * unit_);
}

TEST_F(Oracle, FollowsChanges) {
  Give(0, getpid());
  ASSERT_CU(Fill(Unit(0), 1, 1));
  ASSERT_CU(cuCtxSynchronize());
  EXPECT_EQ(Violations(), 0u);
  Give(0, 1);
  ASSERT_CU(cuMemsetD8_v2(Unit(0), 0, 4));
  ASSERT_CU(cuCtxSynchronize());
  EXPECT_EQ(Violations(), 1u);
  Give(0, getpid());
  EXPECT_EQ(Read32(Unit(0)), 0u);
  EXPECT_EQ(Violations(), 1u);
}

TEST_F(Oracle, LeavesOtherMemoryAlone) {
  const CUdeviceptr mine = Alloc(4096);
  ASSERT_CU(Fill(mine, 9, 1024));
  EXPECT_EQ(Read32(mine), 9u);
  EXPECT_EQ(Violations(), 0u);
}

class ExemptOracle : public Oracle {
 protected:
  void SetUp() override {
    setenv("SLUICE_ORACLE_EXEMPT", "1", 1);
    Oracle::SetUp();
  }
  void TearDown() override {
    Oracle::TearDown();
    unsetenv("SLUICE_ORACLE_EXEMPT");
  }
};

TEST_F(ExemptOracle, TheOwnerOfThePoolMayTouchEverything) {
  Give(0, 1);
  ASSERT_CU(Fill(Unit(0), 1, 8 * unit_ / 4));
  ASSERT_CU(cuCtxSynchronize());
  EXPECT_EQ(Violations(), 0u);
}

}  // namespace
}  // namespace sluice::contract
