// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <gtest/gtest.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>

#include "noderuntime/session/socket.h"
#include "tests/unit/noderuntime/support/scripted_client.h"

namespace sluice::session {
namespace {

class AcceptorTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char dir[] = "/tmp/sluice-acceptor-test-XXXXXX";
    ASSERT_NE(::mkdtemp(dir), nullptr);
    dir_ = dir;
    Result<UniqueFd> listener = ListenAt(path());
    ASSERT_TRUE(listener.ok());
    listener_ = std::move(*listener);
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &files_), 0);
  }
  void TearDown() override {
    ::setrlimit(RLIMIT_NOFILE, &files_);
    std::filesystem::remove_all(dir_);
  }
  std::string path() const { return dir_ + "/socket"; }
  bool SomebodyWaits() const {
    pollfd waits = {listener_.get(), POLLIN, 0};
    return ::poll(&waits, 1, 0) == 1;
  }
  /// No number is left below the limit.
  void UseUpDescriptors() const {
    const UniqueFd next(::dup(listener_.get()));
    rlimit low = files_;
    low.rlim_cur = static_cast<rlim_t>(next.get());
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);
  }

  std::string dir_;
  UniqueFd listener_;
  rlimit files_ = {};
};

TEST_F(AcceptorTest, TakesWhoeverCalls) {
  Acceptor acceptor;
  EXPECT_FALSE(acceptor.Accept(listener_.get()).valid());
  const auto client = testing::ScriptedClient::Connect(path());
  EXPECT_TRUE(acceptor.Accept(listener_.get()).valid());
  EXPECT_FALSE(SomebodyWaits());
}

// A caller who stays in the queue would wake the daemon's loop at once, again and again.
TEST_F(AcceptorTest, HangsUpWhereNoDescriptorIsLeft) {
  Acceptor acceptor;
  auto first = testing::ScriptedClient::Connect(path());
  auto second = testing::ScriptedClient::Connect(path());
  UseUpDescriptors();
  for (auto* client : {&first, &second}) {
    EXPECT_FALSE(acceptor.Accept(listener_.get()).valid());
    EXPECT_FALSE(client->Receive().has_value());
    EXPECT_TRUE(client->closed());
  }
  EXPECT_FALSE(SomebodyWaits());
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &files_), 0);
  const auto third = testing::ScriptedClient::Connect(path());
  EXPECT_TRUE(acceptor.Accept(listener_.get()).valid()) << "it is over when descriptors are back";
}

}  // namespace
}  // namespace sluice::session
