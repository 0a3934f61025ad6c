// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/session/shared_pages.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace sluice::session {
namespace {

class SharedPagesTest : public ::testing::Test {
 protected:
  SharedPagesTest() : made_(SharedPages::Create()) {}
  SharedPages& pages() { return *made_; }
  void SetUp() override { ASSERT_TRUE(made_.ok()) << made_.status().message(); }

  /// A client's own mapping of a page; MAP_FAILED when it is refused.
  static void* Map(int fd, int protection) {
    struct stat info = {};
    EXPECT_EQ(::fstat(fd, &info), 0);
    return ::mmap(nullptr, static_cast<size_t>(info.st_size), protection, MAP_SHARED, fd, 0);
  }

  Result<SharedPages> made_;
};

TEST_F(SharedPagesTest, SizesCannotBeChanged) {
  for (const int fd : {pages().mark_fd(), pages().client_fd(), pages().daemon_fd()}) {
    EXPECT_EQ(::ftruncate(fd, 0), -1);
    EXPECT_EQ(errno, EPERM);
    EXPECT_EQ(::ftruncate(fd, 1 << 24), -1);
    EXPECT_EQ(errno, EPERM);
    // Nor can the seals be added to: a client could seal its own writes away.
    EXPECT_EQ(::fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), -1);
  }
}

TEST_F(SharedPagesTest, PagesAreWholeAndLargeEnough) {
  struct stat info = {};
  ASSERT_EQ(::fstat(pages().mark_fd(), &info), 0);
  EXPECT_EQ(info.st_size, 4096);
  ASSERT_EQ(::fstat(pages().client_fd(), &info), 0);
  EXPECT_GE(static_cast<size_t>(info.st_size), sizeof(protocol::ClientPage));
  ASSERT_EQ(::fstat(pages().daemon_fd(), &info), 0);
  EXPECT_GE(static_cast<size_t>(info.st_size), sizeof(protocol::DaemonPage));
}

TEST_F(SharedPagesTest, AClientCanWriteItsPagesButNotTheDaemons) {
  EXPECT_NE(Map(pages().mark_fd(), PROT_READ | PROT_WRITE), MAP_FAILED);
  EXPECT_NE(Map(pages().client_fd(), PROT_READ | PROT_WRITE), MAP_FAILED);
  EXPECT_EQ(Map(pages().daemon_fd(), PROT_READ | PROT_WRITE), MAP_FAILED);
  EXPECT_EQ(::pwrite(pages().daemon_fd(), "x", 1, 0), -1);
  void* read_only = Map(pages().daemon_fd(), PROT_READ);
  ASSERT_NE(read_only, MAP_FAILED);
  EXPECT_EQ(::mprotect(read_only, 4096, PROT_READ | PROT_WRITE), -1);
}

TEST_F(SharedPagesTest, BothSidesSeeTheSameBytes) {
  auto* client =
      static_cast<protocol::ClientPage*>(Map(pages().client_fd(), PROT_READ | PROT_WRITE));
  const auto* daemon =
      static_cast<const protocol::DaemonPage*>(Map(pages().daemon_fd(), PROT_READ));
  client->head.store(3);
  EXPECT_EQ(pages().client().head.load(), 3u);
  pages().daemon().flags.store(protocol::kPressure);
  EXPECT_EQ(daemon->flags.load(), protocol::kPressure);
  SharedPages moved = std::move(pages());
  moved.daemon().tail.store(9);
  EXPECT_EQ(daemon->tail.load(), 9u);
}

}  // namespace
}  // namespace sluice::session
