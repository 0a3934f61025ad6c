// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// What a process is told of its job while nobody answers on the job's socket, which a keeper holds.
#include "intercept/session/job_report.h"

#include <errno.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <optional>
#include <string>
#include <thread>

#include "intercept/base/system.h"
#include "intercept/session/frame_socket.h"

namespace sluice {
namespace {

/// Below the 30 s for which a blocking connect waits for room in the queue.
constexpr uint64_t kSoonNs = 15'000'000'000;

class JobReportTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char folder[] = "/tmp/sluice-report-XXXXXX";
    ASSERT_NE(mkdtemp(folder), nullptr);
    folder_ = folder;
    path_ = folder_ + "/sluice.sock";
    listener_ = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    const sockaddr_un address = Address();
    ASSERT_EQ(bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    ASSERT_EQ(listen(listener_, 4), 0);
  }
  void TearDown() override {
    close(listener_);
    unlink(path_.c_str());
    rmdir(folder_.c_str());
  }
  sockaddr_un Address() const {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    strcpy(address.sun_path, path_.c_str());
    return address;
  }
  /// A daemon is there for one question.
  bool AskAndAnswer(uint64_t used, protocol::Told* told) {
    std::thread daemon([&] {
      const int peer = accept(listener_, nullptr, nullptr);
      protocol::Ask ask{};
      EXPECT_EQ(recv(peer, &ask, sizeof ask, 0), static_cast<ssize_t>(sizeof ask));
      protocol::Told answer{};
      answer.header = {protocol::kMagic, static_cast<uint16_t>(protocol::FrameType::kTold), 0,
                       sizeof answer, 0};
      answer.total_bytes = 100;
      answer.used_bytes = used;
      EXPECT_EQ(send(peer, &answer, sizeof answer, 0), static_cast<ssize_t>(sizeof answer));
      close(peer);
    });
    const bool answered = report_.Ask(path_.c_str(), told);
    daemon.join();
    return answered;
  }
  /// The daemon for one question: a Notice or none, and then what the job may be told, or its end.
  void Serve(bool notice, std::optional<uint32_t> flags) {
    const int peer = accept(listener_, nullptr, nullptr);
    protocol::Ask ask{};
    EXPECT_EQ(recv(peer, &ask, sizeof ask, 0), static_cast<ssize_t>(sizeof ask));
    if (notice) {
      protocol::Notice frame{};
      frame.header = {protocol::kMagic, static_cast<uint16_t>(protocol::FrameType::kNotice), 0,
                      sizeof frame, 0};
      EXPECT_EQ(send(peer, &frame, sizeof frame, 0), static_cast<ssize_t>(sizeof frame));
    }
    if (flags.has_value()) {
      protocol::Told answer{};
      answer.header = {protocol::kMagic, static_cast<uint16_t>(protocol::FrameType::kTold), 0,
                       sizeof answer, 0};
      answer.flags = *flags;
      EXPECT_EQ(send(peer, &answer, sizeof answer, 0), static_cast<ssize_t>(sizeof answer));
    }
    close(peer);
  }
  /// How many connections nobody has taken yet; takes them.
  int Waiting() {
    fcntl(listener_, F_SETFL, O_NONBLOCK);
    int count = 0;
    for (int peer = -1; (peer = accept(listener_, nullptr, nullptr)) >= 0; ++count) close(peer);
    fcntl(listener_, F_SETFL, 0);
    return count;
  }
  /// Nobody takes connections, and there is no room for another one.
  void FillQueue() {
    const sockaddr_un address = Address();
    int failed = 0;
    while (failed == 0) {
      const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
      failed = connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address);
      if (failed != 0) {
        EXPECT_EQ(errno, EAGAIN);
      }
      close(fd);
    }
  }

  std::string folder_;
  std::string path_;
  int listener_ = -1;
  JobReport report_;
};

TEST_F(JobReportTest, WithoutADaemonItIsWhatWasSaidLast) {
  protocol::Told told{};
  ASSERT_TRUE(AskAndAnswer(30, &told));
  EXPECT_EQ(told.used_bytes, 30u);
  ASSERT_TRUE(AskAndAnswer(40, &told));
  EXPECT_EQ(told.used_bytes, 40u);
  // The daemon is gone, its socket is not.
  told = {};
  ASSERT_TRUE(report_.Ask(path_.c_str(), &told));
  EXPECT_EQ(told.total_bytes, 100u);
  EXPECT_EQ(told.used_bytes, 40u);
  EXPECT_EQ(Waiting(), 1);
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(report_.Ask(path_.c_str(), &told));
  EXPECT_EQ(told.used_bytes, 40u);
  EXPECT_EQ(Waiting(), 0) << "it was asked again at once";
}

TEST_F(JobReportTest, WhoWasNeverToldKnowsNothing) {
  protocol::Told told{};
  EXPECT_FALSE(report_.Ask(path_.c_str(), &told));
  EXPECT_FALSE(report_.Ask("", &told));
  EXPECT_FALSE(report_.Ask(nullptr, &told));
}

TEST_F(JobReportTest, TheFirstQuestionWaitsForADaemonThatFindsOut) {
  std::thread daemon([this] { Serve(true, protocol::kLeaveAlone); });
  protocol::Told told{};
  EXPECT_TRUE(report_.AskFirst(path_.c_str(), &told));
  EXPECT_EQ(told.flags, protocol::kLeaveAlone);
  daemon.join();
}

TEST_F(JobReportTest, TheFirstQuestionWaitsForTheNextDaemon) {
  std::thread daemon([this] {
    Serve(true, std::nullopt);
    // Nobody is behind the socket for a while, and then there is none.
    close(listener_);
    SleepNs(50'000'000);
    unlink(path_.c_str());
    SleepNs(50'000'000);
    listener_ = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    const sockaddr_un address = Address();
    ASSERT_EQ(bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    ASSERT_EQ(listen(listener_, 4), 0);
    Serve(false, protocol::kLeaveAlone);
  });
  protocol::Told told{};
  EXPECT_TRUE(report_.AskFirst(path_.c_str(), &told));
  EXPECT_EQ(told.flags, protocol::kLeaveAlone);
  daemon.join();
}

TEST_F(JobReportTest, TheFirstQuestionDoesNotWaitWhereThereNeverWasADaemon) {
  const uint64_t start = NowNs();
  protocol::Told told{};
  EXPECT_FALSE(report_.AskFirst((folder_ + "/nobody.sock").c_str(), &told));
  EXPECT_LT(NowNs() - start, 1'000'000'000u);
}

TEST_F(JobReportTest, AFullQueueMakesNobodyWait) {
  FrameSocket old;
  ASSERT_EQ(old.Connect(path_.c_str()), nullptr);
  FillQueue();
  const uint64_t start = NowNs();
  protocol::Told told{};
  EXPECT_FALSE(report_.Ask(path_.c_str(), &told));
  EXPECT_EQ(old.Reconnect(path_.c_str()), FrameSocket::kFull);
  EXPECT_LT(NowNs() - start, kSoonNs);
  EXPECT_GT(Waiting(), 0);
  EXPECT_EQ(old.Reconnect(path_.c_str()), nullptr);
  old.Close();
}

}  // namespace
}  // namespace sluice
