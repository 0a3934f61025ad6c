// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// A daemon that is there and does nothing, as one that is stopped.
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <future>
#include <thread>

#include "tests/unit/intercept/client_fixture.h"

namespace sluice::test {
namespace {

using protocol::FrameType;

constexpr char kSilent[] = "sluice: the daemon has given no sign of life for 1 s";
constexpr char kBack[] = "sluice: the daemon is back\n";

/// What is written to stderr while this lives, to be read meanwhile.
class Stderr {
 public:
  Stderr() : saved_(::dup(STDERR_FILENO)), file_(::memfd_create("stderr", MFD_CLOEXEC)) {
    EXPECT_GE(::dup2(file_, STDERR_FILENO), 0);
  }
  ~Stderr() {
    ::dup2(saved_, STDERR_FILENO);
    ::close(saved_);
    ::close(file_);
  }
  std::string Text() const {
    std::string text(1 << 16, 0);
    const ssize_t size = ::pread(file_, text.data(), text.size(), 0);
    text.resize(size > 0 ? static_cast<size_t>(size) : 0);
    return text;
  }
  size_t Count(const std::string& part) const {
    const std::string text = Text();
    size_t count = 0;
    for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++count;
    return count;
  }
  /// Waits (bounded) until `part` was written `count` times.
  bool Await(const std::string& part, size_t count) const {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (Count(part) < count && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::yield();
    }
    return Count(part) >= count;
  }

 private:
  int saved_;
  int file_;
};

class ClientSilence : public ClientTest {
 protected:
  void SetUp() override { Begin(protocol::kMinor); }
  void Begin(uint16_t minor) {
    Client::Settings settings;
    settings.silence_ms = 60;
    Start({.minor = minor, .socket_is_kept = true}, settings);
    driver.immediate = true;
  }
  /// The next requests stay without an answer, while holds_ is true.
  void HoldNext() {
    daemon->on_request = [this](const protocol::Header& request) {
      if (!holds_) return daemon->AnswerAsUsual(request);
      held_ = request.seq;
    };
  }
  std::future<CUresult> AskForMore() {
    return std::async(std::launch::async, [this] {
      CUdeviceptr at = 0;
      return client->AllocAsync(&at, 4 * kUnit, FakeDriver::Stream(1));
    });
  }
  /// The client's end of the conversation.
  int Socket() const {
    for (int fd = 3; fd < 4096; ++fd) {
      sockaddr_un peer = {};
      socklen_t length = sizeof peer;
      if (::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &length) == 0 &&
          peer.sun_family == AF_UNIX && daemon->path() == peer.sun_path) {
        return fd;
      }
    }
    return -1;
  }

  std::atomic<uint32_t> held_{0};
  // Not an assignment to on_request: the daemon's thread may still be on its way out of that.
  std::atomic<bool> holds_{true};
};

TEST_F(ClientSilence, IsSaidOnceAndSoIsItsEnd) {
  AllocAsync(kUnit);
  HoldNext();
  const Stderr said;
  auto more = AskForMore();
  EXPECT_TRUE(said.Await(kSilent, 1)) << said.Text();
  EXPECT_TRUE(Contains(said.Text(), "kill -CONT")) << said.Text();
  // It goes on, and has no answer yet; then it stops again.
  daemon->daemon->beats.fetch_add(1);
  EXPECT_TRUE(said.Await(kBack, 1)) << said.Text();
  EXPECT_TRUE(said.Await(kSilent, 2)) << said.Text();
  daemon->Grant(held_, {{8, 4}}, protocol::kNoGate);
  EXPECT_EQ(more.get(), CUDA_SUCCESS);
  EXPECT_EQ(said.Count(kSilent), 2u) << said.Text();
  EXPECT_EQ(said.Count(kBack), 2u) << said.Text();
}

// Somebody killed it, and another one took its place.
TEST_F(ClientSilence, EndsWithTheNextDaemon) {
  AllocAsync(kUnit);
  HoldNext();
  const Stderr said;
  auto more = AskForMore();
  EXPECT_TRUE(said.Await(kSilent, 1)) << said.Text();
  holds_ = false;
  daemon->HangUp();
  EXPECT_EQ(more.get(), CUDA_SUCCESS);
  EXPECT_EQ(said.Count(kSilent), 1u) << said.Text();
  EXPECT_EQ(said.Count(kBack), 1u) << said.Text();
}

// It reads nothing, and what it was sent is as much as it may be: who has more to say waits, too,
// and does not take it for dead.
TEST_F(ClientSilence, WhoHasMoreToSayWaits) {
  constexpr uint32_t kFrames = 24;
  CUdeviceptr blocks[kFrames];
  for (CUdeviceptr& block : blocks) block = AllocAsync(kUnit);
  const int socket = Socket();
  const int least = 1;
  ASSERT_EQ(::setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &least, sizeof least), 0);
  std::promise<void> goes_on;
  std::shared_future<void> stopped = goes_on.get_future().share();
  daemon->on_release = [stopped](const protocol::Release&) { stopped.wait(); };
  CUmemoryPool pool = nullptr;
  ASSERT_EQ(driver.table().cuDeviceGetDefaultMemPool(&pool, 0), CUDA_SUCCESS);
  const Stderr said;
  auto all = std::async(std::launch::async, [&] {
    for (const CUdeviceptr block : blocks) {
      EXPECT_EQ(client->Free(block), CUDA_SUCCESS);
      EXPECT_EQ(client->PoolTrimTo(pool, 0), CUDA_SUCCESS);
    }
  });
  EXPECT_TRUE(said.Await(kSilent, 1)) << said.Text();
  goes_on.set_value();
  all.get();
  EXPECT_EQ(daemon->Wait(FrameType::kRelease, kFrames).size(), kFrames);
  EXPECT_EQ(said.Count(kSilent), 1u) << said.Text();
  EXPECT_EQ(said.Count(kBack), 1u) << said.Text();
  EXPECT_EQ(said.Count("lost"), 0u) << said.Text();
}

// Nothing shows whether it lives.
TEST_F(ClientSilence, IsNotSaidOfADaemonOfAnEarlierProtocol) {
  Begin(protocol::kBeatMinor - 1);
  AllocAsync(kUnit);
  HoldNext();
  const Stderr said;
  auto more = AskForMore();
  EXPECT_EQ(more.wait_for(std::chrono::milliseconds(250)), std::future_status::timeout);
  EXPECT_EQ(said.Text(), "");
  daemon->Grant(held_, {{8, 4}}, protocol::kNoGate);
  EXPECT_EQ(more.get(), CUDA_SUCCESS);
}

}  // namespace
}  // namespace sluice::test
