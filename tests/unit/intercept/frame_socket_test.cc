// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "intercept/session/frame_socket.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <string>

#include "common/peer/rule.h"
#include "tests/support/other_user.h"

namespace sluice {
namespace {

using protocol::FrameType;

class FrameSocketTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char dir[] = "/tmp/sluice-frame-socket-test-XXXXXX";
    ASSERT_NE(mkdtemp(dir), nullptr);
    dir_ = dir;
    const std::string path = dir_ + "/socket";
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    ASSERT_LT(path.size(), sizeof address.sun_path);
    memcpy(address.sun_path, path.c_str(), path.size() + 1);
    const int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    ASSERT_EQ(bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    ASSERT_EQ(listen(listener, 1), 0);
    ASSERT_EQ(client_.Connect(path.c_str()), nullptr);
    daemon_ = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    close(listener);
    ASSERT_GE(daemon_, 0);
  }
  void TearDown() override {
    client_.Close();
    HangUp();
    std::filesystem::remove_all(dir_);
  }

  void HangUp() {
    if (daemon_ >= 0) close(daemon_);
    daemon_ = -1;
  }
  void SayClose(const char* text) const {
    protocol::Close frame{};
    frame.header = MakeHeader(FrameType::kClose, sizeof frame, 0);
    strncpy(frame.text, text, sizeof frame.text - 1);
    ASSERT_EQ(send(daemon_, &frame, sizeof frame, MSG_NOSIGNAL),
              static_cast<ssize_t>(sizeof frame));
  }
  const char* Receive() { return client_.Receive(&frame_, &fds_, 1'000); }

  std::string dir_;
  FrameSocket client_;
  int daemon_ = -1;
  Frame frame_{};
  FrameFds fds_{};
};

TEST_F(FrameSocketTest, AFrameComesAsItWasSent) {
  SayClose("enough");
  ASSERT_EQ(Receive(), nullptr);
  EXPECT_EQ(frame_.header.type, static_cast<uint16_t>(FrameType::kClose));
  EXPECT_STREQ(frame_.close.text, "enough");
  EXPECT_FALSE(client_.hung_up());
}

TEST_F(FrameSocketTest, TheEndIsSaid) {
  HangUp();
  EXPECT_STREQ(Receive(), "it is gone");
  EXPECT_TRUE(client_.hung_up());
}

// Why it refuses a frame is said before it hangs up, with other frames still unread. The kernel
// tells of those first.
TEST_F(FrameSocketTest, TheLastWordOfOneWhoLeftFramesUnreadIsHeard) {
  protocol::Ready ready{MakeHeader(FrameType::kReady, sizeof ready, 0)};
  ASSERT_EQ(client_.Send(&ready.header), nullptr);
  SayClose("enough");
  HangUp();
  ASSERT_EQ(Receive(), nullptr);
  EXPECT_STREQ(frame_.close.text, "enough");
  EXPECT_FALSE(client_.hung_up());
  EXPECT_STREQ(Receive(), "it is gone");
  EXPECT_TRUE(client_.hung_up());
}

// While no daemon is there, too: it is looked at who listens each time.
TEST_F(FrameSocketTest, AnotherUsersIsRefusedBehindTheRightOne) {
  SLUICE_NEEDS_OTHER_USERS();
  const std::string path = dir_ + "/socket";
  std::filesystem::remove(path);
  const UniqueFd impostor = testing::ListenAs(testing::kImpostor, path);
  const char* why = peer::Why(peer::Verdict::kOthersListener);
  EXPECT_STREQ(client_.Reconnect(path.c_str()), why);
  FrameSocket other;
  EXPECT_STREQ(other.Connect(path.c_str()), why);
  EXPECT_STREQ(other.ConnectNow(path.c_str()), why);
  EXPECT_FALSE(other.open());
  EXPECT_EQ(testing::WhatCame(impostor).bytes, 0u);
  SayClose("still the right one");
  EXPECT_EQ(Receive(), nullptr);
}

}  // namespace
}  // namespace sluice
