// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/keeper/table.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <vector>

#include "common/unique_fd.h"

namespace sluice::keeper {
namespace {

bool Open(int fd) { return ::fcntl(fd, F_GETFD) >= 0; }

class TableTest : public ::testing::Test {
 protected:
  int MakeFd() { return ::dup(STDERR_FILENO); }
  std::unique_ptr<Table> table_ = std::make_unique<Table>();
};

TEST_F(TableTest, KeepsByKindIdAndIndex) {
  const int fds[] = {MakeFd(), MakeFd()};
  ASSERT_TRUE(table_->Store({Kind::kPoolHandle, 0, 5}, fds, 2));
  EXPECT_EQ(table_->Find({Kind::kPoolHandle, 0, 5}), fds[0]);
  EXPECT_EQ(table_->Find({Kind::kPoolHandle, 0, 6}), fds[1]);
  EXPECT_EQ(table_->Find({Kind::kPoolHandle, 0, 7}), -1);
  EXPECT_EQ(table_->Find({Kind::kPoolHandle, 1, 5}), -1);
  EXPECT_EQ(table_->Find({Kind::kListener, 0, 5}), -1);
}

TEST_F(TableTest, AKeyInUseIsReplacedAndTheOldDescriptorClosed) {
  const int first = MakeFd();
  const int second = MakeFd();
  ASSERT_TRUE(table_->Store({Kind::kListener, 1, 0}, &first, 1));
  ASSERT_TRUE(table_->Store({Kind::kListener, 1, 0}, &second, 1));
  EXPECT_EQ(table_->size(), 1u);
  EXPECT_FALSE(Open(first));
  EXPECT_EQ(table_->Find({Kind::kListener, 1, 0}), second);
}

TEST_F(TableTest, DroppingClosesAllOfAKindAndIdAndNothingElse) {
  const int fds[] = {MakeFd(), MakeFd(), MakeFd()};
  ASSERT_TRUE(table_->Store({Kind::kMarkPage, 1, 0}, fds, 2));
  ASSERT_TRUE(table_->Store({Kind::kMarkPage, 2, 0}, fds + 2, 1));
  table_->Drop(Kind::kMarkPage, 1);
  EXPECT_FALSE(Open(fds[0]) || Open(fds[1]));
  EXPECT_EQ(table_->Find({Kind::kMarkPage, 2, 0}), fds[2]);
  table_->Drop(Kind::kMarkPage, 9);
  EXPECT_EQ(table_->size(), 1u);
}

// Without room for a whole batch none of it is taken, and none of it leaks. Bare numbers stand for
// descriptors that are not open: there are not so many.
TEST_F(TableTest, AFullTableTakesNothing) {
  constexpr int kBare = 1 << 24;
  const std::vector<int> bare(kMaxFds, kBare);
  for (uint32_t id = 0; table_->size() + kMaxFds <= kMaxItems; ++id) {
    ASSERT_TRUE(table_->Store({Kind::kPoolHandle, id, 0}, bare.data(), kMaxFds));
  }
  ASSERT_EQ(table_->size(), kMaxItems) << "kMaxItems is a multiple of a batch";
  const int one_more = MakeFd();
  EXPECT_FALSE(table_->Store({Kind::kListener, 2, 0}, &one_more, 1));
  EXPECT_FALSE(Open(one_more));
  EXPECT_EQ(table_->size(), kMaxItems);
  EXPECT_TRUE(table_->Store({Kind::kPoolHandle, 0, 0}, bare.data(), 1)) << "in the place of one";
  EXPECT_EQ(table_->size(), kMaxItems);
}

TEST_F(TableTest, ALivenessPipeLivesUntilItHangsUp) {
  EXPECT_FALSE(table_->SomebodyLives());
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ASSERT_TRUE(table_->Store({Kind::kLiveness, 1, 0}, &ends[0], 1));
  EXPECT_TRUE(table_->SomebodyLives());
  ::close(ends[1]);
  EXPECT_FALSE(table_->SomebodyLives());
}

TEST_F(TableTest, AProcessLivesUntilItHasEnded) {
  int go[2];
  ASSERT_EQ(::pipe(go), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    char byte = 0;
    ::close(go[1]);
    (void)!::read(go[0], &byte, 1);
    ::_exit(0);
  }
  const int pidfd = static_cast<int>(::syscall(SYS_pidfd_open, child, 0));
  ASSERT_GE(pidfd, 0);
  ASSERT_TRUE(table_->Store({Kind::kPidfd, 1, 0}, &pidfd, 1));
  EXPECT_TRUE(table_->SomebodyLives());
  ::close(go[0]);
  ::close(go[1]);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_FALSE(table_->SomebodyLives());
}

}  // namespace
}  // namespace sluice::keeper
