// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/cli/daemon_client.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <optional>
#include <vector>

#include "intercept/protocol/wire.h"
#include "tests/support/temp_folder.h"

namespace sluice::cli {
namespace {

namespace wire = ::sluice::protocol;

template <typename Frame>
Frame MakeFrame(wire::FrameType type) {
  Frame frame = {};
  frame.header = {wire::kMagic, static_cast<uint16_t>(type), 0, sizeof(Frame), 1};
  return frame;
}

/// A daemon in this thread: its answers are sent before the client asks.
class DaemonClientTest : public ::testing::Test {
 protected:
  void SetUp() override {
    path_ = folder_ / "client.sock";
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    std::strcpy(address.sun_path, path_.c_str());
    listener_.reset(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    ASSERT_EQ(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    ASSERT_EQ(::listen(listener_.get(), 4), 0);
    auto client = DaemonClient::Connect(path_);
    ASSERT_TRUE(client.ok()) << client.status().message();
    client_ = std::move(*client);
    daemon_.reset(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    ASSERT_TRUE(daemon_.valid());
  }

  template <typename Frame>
  void Answer(const Frame& frame) {
    ASSERT_EQ(::send(daemon_.get(), &frame, sizeof frame, 0), ssize_t{sizeof frame});
  }
  template <typename Frame>
  void AnswerWithFile(const Frame& frame, int fd) {
    Frame copy = frame;
    iovec part = {&copy, sizeof copy};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof fd)] = {};
    msghdr message = {};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* item = CMSG_FIRSTHDR(&message);
    item->cmsg_level = SOL_SOCKET;
    item->cmsg_type = SCM_RIGHTS;
    item->cmsg_len = CMSG_LEN(sizeof fd);
    std::memcpy(CMSG_DATA(item), &fd, sizeof fd);
    ASSERT_EQ(::sendmsg(daemon_.get(), &message, 0), ssize_t{sizeof copy});
  }

  sluice::testing::TempFolder folder_;
  std::string path_;
  UniqueFd listener_;
  UniqueFd daemon_;
  std::optional<DaemonClient> client_;
};

TEST_F(DaemonClientTest, RegistersWithWhatTheUserAskedFor) {
  auto answer = MakeFrame<wire::Registered>(wire::FrameType::kRegistered);
  answer.job = 7;
  std::strcpy(answer.path, "/run/jobs/7/sluice.sock");
  Answer(answer);
  const auto grant = client_->Register({3, 2, 1, std::string(500, 'n')});
  ASSERT_TRUE(grant.ok()) << grant.status().message();
  EXPECT_EQ(grant->job, 7u);
  EXPECT_EQ(grant->socket, "/run/jobs/7/sluice.sock");

  wire::Register asked = {};
  ASSERT_EQ(::recv(daemon_.get(), &asked, sizeof asked, 0), ssize_t{sizeof asked});
  EXPECT_EQ(asked.header.magic, wire::kMagic);
  EXPECT_EQ(asked.header.bytes, sizeof asked);
  EXPECT_EQ(asked.limit_bytes, 3u);
  EXPECT_EQ(asked.request_bytes, 2u);
  EXPECT_EQ(asked.gpu, 1u);
  EXPECT_EQ(std::string(asked.name), std::string(127, 'n')) << "cut, and terminated";
}

TEST_F(DaemonClientTest, ARefusalCarriesItsReason) {
  auto answer = MakeFrame<wire::Registered>(wire::FrameType::kRegistered);
  answer.status = 1;
  std::strcpy(answer.path, "job 1 'a' holds 12.0 MiB");
  Answer(answer);
  const auto grant = client_->Register({});
  EXPECT_EQ(grant.status().code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(grant.status().message(), "job 1 'a' holds 12.0 MiB");
}

TEST_F(DaemonClientTest, ACloseFrameCarriesItsReason) {
  auto close = MakeFrame<wire::Close>(wire::FrameType::kClose);
  std::strcpy(close.text, "too many jobs");
  Answer(close);
  EXPECT_EQ(client_->Register({}).status().message(), "sluice-noded: too many jobs");
}

TEST_F(DaemonClientTest, GarbageIsAnError) {
  Answer(uint64_t{42});
  EXPECT_EQ(client_->Register({}).status().message(), "sluice-noded: sent a truncated frame");
  auto other = MakeFrame<wire::Notice>(wire::FrameType::kNotice);
  Answer(other);
  EXPECT_EQ(client_->Register({}).status().message(),
            "sluice-noded: sent an unexpected frame of type 36");
  other.header.magic = 1;
  Answer(other);
  EXPECT_EQ(client_->Register({}).status().message(), "sluice-noded: speaks another protocol");
}

TEST_F(DaemonClientTest, ADaemonThatGoesAwayIsUnavailable) {
  daemon_.reset();
  listener_.reset();
  EXPECT_FALSE(client_->Register({}).ok());
  EXPECT_EQ(DaemonClient::Connect(path_).status().code(), StatusCode::kUnavailable);
  ::unlink(path_.c_str());
  EXPECT_EQ(DaemonClient::Connect(path_).status().code(), StatusCode::kNotFound);
}

TEST_F(DaemonClientTest, ADaemonThatHangsIsWaitedForAsLongAsIsSaid) {
  constexpr std::chrono::milliseconds kShort{20};
  std::vector<DaemonClient> crowd;
  Result<DaemonClient> next = DaemonClient::Connect(path_, kShort);
  ASSERT_TRUE(next.ok()) << next.status().message();
  // It is this process, which is busy with asking.
  EXPECT_EQ(next->FetchStatus().status().message(),
            "sluice-noded: no answer within 0.02 s: process " + std::to_string(::getpid()) +
                " hangs, or its control group is frozen");
  // Nobody accepts: the backlog of four is full soon.
  for (; next.ok() && crowd.size() < 16; next = DaemonClient::Connect(path_, kShort)) {
    crowd.push_back(std::move(*next));
  }
  EXPECT_EQ(next.status().code(), StatusCode::kInternal);
  EXPECT_EQ(next.status().message(), "sluice-noded: no answer within 0.02 s");
}

TEST_F(DaemonClientTest, ReadsTheStatusFromItsFile) {
  const UniqueFd file(::memfd_create("status", MFD_CLOEXEC));
  ASSERT_EQ(::write(file.get(), "{\"a\":1}", 7), 7);
  auto reply = MakeFrame<wire::StatusReply>(wire::FrameType::kStatusReply);
  reply.json_bytes = 7;
  AnswerWithFile(reply, file.get());
  const auto text = client_->FetchStatus();
  ASSERT_TRUE(text.ok()) << text.status().message();
  EXPECT_EQ(*text, "{\"a\":1}");
}

TEST_F(DaemonClientTest, AsksForAStatusWithoutEvents) {
  const UniqueFd file(::memfd_create("status", MFD_CLOEXEC));
  const auto reply = MakeFrame<wire::StatusReply>(wire::FrameType::kStatusReply);
  for (const bool events : {true, false}) {
    AnswerWithFile(reply, file.get());
    ASSERT_TRUE(client_->FetchStatus(events).ok());
    wire::Status asked = {};
    ASSERT_EQ(::recv(daemon_.get(), &asked, sizeof asked, 0), ssize_t{sizeof asked});
    EXPECT_EQ((asked.header.flags & wire::kWithoutEvents) == 0, events);
  }
}

TEST_F(DaemonClientTest, AStatusLongerThanItsFileIsAnError) {
  const UniqueFd file(::memfd_create("status", MFD_CLOEXEC));
  auto reply = MakeFrame<wire::StatusReply>(wire::FrameType::kStatusReply);
  reply.json_bytes = 100;
  AnswerWithFile(reply, file.get());
  EXPECT_EQ(client_->FetchStatus().status().message(), "sluice-noded: sent a truncated status");
  Answer(reply);
  EXPECT_EQ(client_->FetchStatus().status().message(),
            "sluice-noded: sent a status without its text");
}

TEST_F(DaemonClientTest, ReadsARecordingOrWhyThereIsNone) {
  const UniqueFd file(::memfd_create("recording", MFD_CLOEXEC));
  ASSERT_EQ(::write(file.get(), "# sluice-trace 1\n", 17), 17);
  auto reply = MakeFrame<wire::RecordingReply>(wire::FrameType::kRecordingReply);
  reply.trace_bytes = 17;
  AnswerWithFile(reply, file.get());
  const auto text = client_->FetchRecording();
  ASSERT_TRUE(text.ok()) << text.status().message();
  EXPECT_EQ(*text, "# sluice-trace 1\n");

  reply.trace_bytes = 18;
  AnswerWithFile(reply, file.get());
  EXPECT_EQ(client_->FetchRecording().status().message(),
            "sluice-noded: sent a truncated recording");
  Answer(reply);
  EXPECT_EQ(client_->FetchRecording().status().message(),
            "sluice-noded: sent a recording without its text");
  reply.status = 1;
  std::memset(reply.text, 'x', sizeof reply.text);  // without an end
  Answer(reply);
  const auto none = client_->FetchRecording();
  EXPECT_EQ(none.status().code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(none.status().message(), std::string(sizeof reply.text - 1, 'x'));
}

TEST_F(DaemonClientTest, ARegistrationThatIsAnsweredAgainByTheNextDaemonIsPassedOver) {
  Answer(MakeFrame<wire::Registered>(wire::FrameType::kRegistered));
  auto reply = MakeFrame<wire::RecordingReply>(wire::FrameType::kRecordingReply);
  reply.status = 1;
  std::strcpy(reply.text, "none");
  Answer(reply);
  EXPECT_EQ(client_->FetchRecording().status().message(), "none");
}

TEST_F(DaemonClientTest, AsksToObserve) {
  Answer(MakeFrame<wire::Registered>(wire::FrameType::kRegistered));
  ASSERT_TRUE(client_->Register({.name = "a", .observe = true}).ok());
  wire::Register asked = {};
  ASSERT_EQ(::recv(daemon_.get(), &asked, sizeof asked, 0), ssize_t{sizeof asked});
  EXPECT_EQ(asked.flags, uint32_t{wire::kObserve});
}

TEST_F(DaemonClientTest, ASharedConnectionLivesUntilBothAreClosed) {
  auto shared = client_->Share();
  ASSERT_TRUE(shared.ok()) << shared.status().message();
  client_.reset();
  char byte = 0;
  EXPECT_EQ(::recv(daemon_.get(), &byte, 1, MSG_DONTWAIT), -1) << "hung up";
  shared->reset();
  EXPECT_EQ(::recv(daemon_.get(), &byte, 1, MSG_DONTWAIT), 0);
}

TEST(DaemonClient, ASocketPathThatIsTooLongNamesTheLimit) {
  const auto client = DaemonClient::Connect("/" + std::string(200, 'x'));
  EXPECT_EQ(client.status().code(), StatusCode::kInvalidArgument);
}

TEST(JobName, IsTheProgramsNameAndItsArguments) {
  EXPECT_EQ(JobName("/opt/bin/train", {"--model", "a"}), "train --model a");
  EXPECT_EQ(JobName("sh", {"-c", "a\nb"}), "sh -c a b");
  EXPECT_EQ(JobName("x", {std::string(300, 'y')}).size(), 127u);
}

}  // namespace
}  // namespace sluice::cli
