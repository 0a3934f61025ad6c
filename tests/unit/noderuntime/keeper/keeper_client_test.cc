// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// The keeper as a process of its own, as the daemon uses it.
#include "noderuntime/keeper/keeper_client.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <filesystem>

#include "tests/support/other_user.h"

namespace sluice::keeper {
namespace {

ino_t Inode(int fd) {
  struct stat info = {};
  EXPECT_EQ(::fstat(fd, &info), 0);
  return info.st_ino;
}

class KeeperClientTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char dir[] = "/tmp/sluice-keeper-test-XXXXXX";
    ASSERT_NE(::mkdtemp(dir), nullptr);
    dir_ = dir;
  }
  void TearDown() override {
    if (keeper_.has_value()) {
      EXPECT_TRUE(keeper_->Bye().ok());
    }
    std::filesystem::remove_all(dir_);
  }
  void Start(uint32_t linger_s = 60) {
    const char* program = ::getenv("SLUICE_TEST_KEEPER");
    ASSERT_NE(program, nullptr) << "run this test with ctest";
    Result<KeeperClient> started = KeeperClient::Start(program, dir_, linger_s);
    ASSERT_TRUE(started.ok()) << started.status().message();
    keeper_.emplace(std::move(*started));
  }
  /// The daemon died; another one comes.
  void Reconnect() {
    keeper_.reset();
    Result<KeeperClient> again = KeeperClient::Connect(dir_);
    ASSERT_TRUE(again.ok()) << again.status().message();
    keeper_.emplace(std::move(*again));
  }
  static UniqueFd File() { return UniqueFd(::memfd_create("kept", MFD_CLOEXEC)); }

  std::string dir_;
  std::optional<KeeperClient> keeper_;
};

TEST_F(KeeperClientTest, WhatIsStoredOutlivesTheDaemon) {
  Start();
  std::vector<UniqueFd> files;
  std::vector<int> numbers;
  for (int i = 0; i < 300; ++i) {
    files.push_back(File());
    numbers.push_back(files.back().get());
  }
  ASSERT_TRUE(keeper_->Store({Kind::kPoolHandle, 0, 0}, numbers).ok());
  ASSERT_TRUE(keeper_->Store(Kind::kListener, 7, numbers[3]).ok());
  Reconnect();
  const Result<std::vector<Key>> keys = keeper_->List();
  ASSERT_TRUE(keys.ok());
  EXPECT_EQ(keys->size(), 301u);
  const Result<std::vector<UniqueFd>> taken = keeper_->Take(Kind::kPoolHandle, 0, 300);
  ASSERT_TRUE(taken.ok()) << taken.status().message();
  for (size_t i = 0; i < files.size(); ++i) {
    ASSERT_EQ(Inode((*taken)[i].get()), Inode(numbers[i])) << i;
  }
  // Copies: the next one finds them too.
  Reconnect();
  const Result<UniqueFd> listener = keeper_->TakeOne(Kind::kListener, 7);
  ASSERT_TRUE(listener.ok());
  EXPECT_EQ(Inode(listener->get()), Inode(numbers[3]));
}

TEST_F(KeeperClientTest, WhatWasDroppedOrNeverThereIsAnError) {
  Start();
  const UniqueFd file = File();
  ASSERT_TRUE(keeper_->Store(Kind::kMarkPage, 1, file.get()).ok());
  ASSERT_TRUE(keeper_->Drop(Kind::kMarkPage, 1).ok());
  EXPECT_EQ(keeper_->TakeOne(Kind::kMarkPage, 1).status().code(), StatusCode::kFailedPrecondition);
  EXPECT_FALSE(keeper_->Take(Kind::kPoolHandle, 0, 2).ok());
  EXPECT_TRUE(keeper_->List()->empty()) << "it goes on";
}

TEST_F(KeeperClientTest, GoodbyeEndsItAndRemovesItsSocket) {
  Start();
  EXPECT_TRUE(std::filesystem::exists(dir_ + "/keeper.sock"));
  EXPECT_TRUE(keeper_->Bye().ok());
  keeper_.reset();
  EXPECT_FALSE(std::filesystem::exists(dir_ + "/keeper.sock"));
  EXPECT_EQ(KeeperClient::Connect(dir_).status().code(), StatusCode::kNotFound);
}

// Nobody waits for one that begins, nor for one that is given up.
TEST_F(KeeperClientTest, BeginsAndEndsWithoutBeingWaitedFor) {
  const std::string program = ::getenv("SLUICE_TEST_KEEPER");
  Result<UniqueFd> launched = KeeperClient::Launch(program, dir_, 60);
  ASSERT_TRUE(launched.ok());
  pollfd begun = {launched->get(), POLLIN, 0};
  ASSERT_EQ(::poll(&begun, 1, 20'000), 1);
  Result<KeeperClient> keeper = KeeperClient::ConnectLaunched(*launched, program, dir_, 0);
  ASSERT_TRUE(keeper.ok()) << keeper.status().message();
  EXPECT_GT(keeper->pid(), 0);
  ASSERT_TRUE(keeper->List().ok());
  keeper->Dismiss();
  pollfd end = {keeper->fd(), POLLIN, 0};
  // An answer that nobody reads, and then the end.
  char answer[64];
  while (::poll(&end, 1, 20'000) == 1 && ::recv(keeper->fd(), answer, sizeof answer, 0) > 0) {
  }
  EXPECT_EQ(KeeperClient::Connect(dir_).status().code(), StatusCode::kNotFound);
}

// It was stopped while it was asked for something, and given up meanwhile.
TEST_F(KeeperClientTest, OneThatWasStoppedHearsThatItWasGivenUp) {
  Start();
  const UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, keeper_->pid(), 0)));
  ASSERT_TRUE(process.valid());
  ASSERT_EQ(::kill(keeper_->pid(), SIGSTOP), 0);
  const Request list = {kMagic, kVersion, Op::kList, {Kind::kState, 0, 0}, 0};
  ASSERT_EQ(::send(keeper_->fd(), &list, sizeof list, 0), static_cast<ssize_t>(sizeof list));
  keeper_->Dismiss();
  const pid_t pid = keeper_->pid();
  keeper_.reset();
  ASSERT_EQ(::kill(pid, SIGCONT), 0);
  pollfd end = {process.get(), POLLIN, 0};
  EXPECT_EQ(::poll(&end, 1, 20'000), 1);
}

TEST_F(KeeperClientTest, OneThatCannotBeginSaysSo) {
  const std::string program = dir_ + "/none";
  Result<UniqueFd> launched = KeeperClient::Launch(program, dir_, 60);
  ASSERT_TRUE(launched.ok());
  const Result<KeeperClient> keeper =
      KeeperClient::ConnectLaunched(*launched, program, dir_, 20'000);
  EXPECT_EQ(keeper.status().message(), program + " did not start");
}

// A second daemon is one too many; the first one is not disturbed.
TEST_F(KeeperClientTest, ServesOneDaemonAtATime) {
  Start();
  Result<KeeperClient> second = KeeperClient::Connect(dir_);
  EXPECT_FALSE(second.ok() && second->List().ok());
  EXPECT_TRUE(keeper_->List().ok());
}

TEST_F(KeeperClientTest, NonsenseEndsTheConnectionAndNothingElse) {
  Start();
  const UniqueFd file = File();
  ASSERT_TRUE(keeper_->Store(Kind::kListener, 1, file.get()).ok());
  ASSERT_EQ(::send(keeper_->fd(), "nonsense", 8, MSG_NOSIGNAL), 8);
  EXPECT_FALSE(keeper_->List().ok());
  Reconnect();
  EXPECT_EQ(keeper_->List()->size(), 1u);
}

TEST_F(KeeperClientTest, AnotherVersionIsRefused) {
  Start();
  const Request request = {kMagic, kVersion + 1, Op::kList, {Kind::kState, 0, 0}, 0};
  ASSERT_EQ(::send(keeper_->fd(), &request, sizeof request, MSG_NOSIGNAL),
            static_cast<ssize_t>(sizeof request));
  Reply reply = {};
  ASSERT_GT(::recv(keeper_->fd(), &reply, sizeof reply, 0), 0);
  EXPECT_EQ(reply.outcome, Outcome::kBadRequest);
  EXPECT_TRUE(keeper_->List().ok());
}

// It would be given all that the daemon has.
TEST_F(KeeperClientTest, OneOfAnotherUserIsNoKeeper) {
  SLUICE_NEEDS_OTHER_USERS();
  const UniqueFd impostor =
      sluice::testing::ListenAs(sluice::testing::kImpostor, dir_ + "/keeper.sock");
  const Result<KeeperClient> client = KeeperClient::Connect(dir_);
  EXPECT_EQ(client.status().code(), StatusCode::kUnavailable);
  EXPECT_EQ(client.status().message(),
            dir_ +
                "/keeper.sock: another user than the owner of the socket's folder listens "
                "there; allowed: a daemon of that owner");
  EXPECT_EQ(sluice::testing::WhatCame(impostor).bytes, 0u);
}

// Without a daemon it stays while a session's process (this one) lives, and not for ever then.
TEST_F(KeeperClientTest, EndsByItselfWhenTheLastHolderIsGone) {
  Start(0);
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  ASSERT_TRUE(keeper_->Store(Kind::kLiveness, 1, ends[0]).ok());
  ::close(ends[0]);
  // It tells its end by closing this.
  int witness[2];
  ASSERT_EQ(::pipe2(witness, O_CLOEXEC), 0);
  ASSERT_TRUE(keeper_->Store(Kind::kListener, 1, witness[1]).ok());
  ::close(witness[1]);
  keeper_.reset();
  pollfd end = {witness[0], POLLIN, 0};
  EXPECT_EQ(::poll(&end, 1, 1200), 0) << "somebody lives";
  ::close(ends[1]);
  EXPECT_EQ(::poll(&end, 1, 20'000), 1);
  ::close(witness[0]);
}

}  // namespace
}  // namespace sluice::keeper
