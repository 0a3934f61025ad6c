// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/oracle/oracle_writer.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/unique_fd.h"

namespace sluice::oracle {
namespace {

class OracleWriterTest : public ::testing::Test {
 protected:
  OracleWriterTest() {
    for (UniqueFd& handle : handles_) handle.reset(::memfd_create("handle", MFD_CLOEXEC));
    layout_ = {1024, 4096, {handles_[0].get(), handles_[1].get()}};
  }
  void TearDown() override { ::unlink(path_.c_str()); }
  /// As an executor sees it.
  const OraclePage* Read() {
    const UniqueFd file(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
    return static_cast<const OraclePage*>(
        ::mmap(nullptr, sizeof(OraclePage), PROT_READ, MAP_SHARED, file.get(), 0));
  }

  std::string path_ = ::testing::TempDir() + "/oracle_test." + std::to_string(::getpid());
  UniqueFd handles_[2];
  OracleLayout layout_;
};

TEST_F(OracleWriterTest, PublishesLayoutAndHolders) {
  Result<OracleWriter> writer = OracleWriter::Create(path_, layout_);
  ASSERT_TRUE(writer.ok());
  const OraclePage* page = Read();
  EXPECT_EQ(page->magic, kOracleMagic);
  EXPECT_EQ(page->unit_count, 8u);
  EXPECT_EQ(page->handle_count, 2u);
  struct stat info = {};
  ASSERT_EQ(::fstat(handles_[1].get(), &info), 0);
  EXPECT_EQ(page->handle_inode[1], info.st_ino);

  writer->SetHolder(2, 3, 77);
  writer->Publish();
  EXPECT_EQ(page->unit[1].holder.load(), 0u);
  EXPECT_EQ(page->unit[2].holder.load(), 77u);
  EXPECT_EQ(page->unit[4].holder.load(), 77u);
  EXPECT_EQ(page->unit[4].epoch.load(), 1u);
  EXPECT_EQ(page->changes.load(), 1u);
  writer->SetHolder(4, 100, 0);
  EXPECT_EQ(page->unit[4].holder.load(), 0u);
  EXPECT_EQ(page->unit[4].epoch.load(), 2u);
}

// Whoever still maps the page of an earlier run must not see this one's holders.
TEST_F(OracleWriterTest, ReplacesTheFileOfAnEarlierRun) {
  ASSERT_TRUE(OracleWriter::Create(path_, layout_).ok());
  const OraclePage* old = Read();
  Result<OracleWriter> writer = OracleWriter::Create(path_, layout_);
  ASSERT_TRUE(writer.ok());
  writer->SetHolder(0, 1, 5);
  EXPECT_EQ(old->unit[0].holder.load(), 0u);
  EXPECT_EQ(Read()->unit[0].holder.load(), 5u);
}

TEST_F(OracleWriterTest, APoolThatIsTooLargeIsRefused) {
  layout_.handle_bytes = layout_.unit_bytes * (kOracleMaxUnits / 2 + 1);
  const auto writer = OracleWriter::Create(path_, layout_);
  ASSERT_FALSE(writer.ok());
  EXPECT_NE(writer.status().message().find("allowed: 4096 and 65536"), std::string::npos);
}

}  // namespace
}  // namespace sluice::oracle
