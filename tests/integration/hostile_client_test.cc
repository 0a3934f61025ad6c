// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>

#include "noderuntime/cli/daemon_client.h"
#include "tests/support/peer.h"
#include "tests/support/raw_client.h"

namespace sluice::testing {
namespace {

using protocol::FrameType;

constexpr int kAnswerMs = 20'000;

/// A daemon with a job that must not notice anything, and sockets for what others send.
class HostileClient : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    BedOptions options;
    options.gpu_memory = "64MiB";
    options.pool = "16MiB";
    bed_ = new TestBed(options);
    peer_ = new Peer(*bed_);
    peer_->AwaitProfile();
  }
  // What the peer computed is part of every test here, so it is compared once after all of them.
  static void TearDownTestSuite() {
    peer_->FinishAndCompare();
    delete peer_;
    bed_->StopDaemon();
    const scheduler::AuditReport report = bed_->log().Audit();
    EXPECT_TRUE(report.ok()) << Violations(report);
    delete bed_;
  }

  static std::vector<uint8_t> Hello() {
    return HelloBytes(bed_->Status().at("gpu_uuid").get<std::string>());
  }
  static std::string DaemonSocket() { return cli::DaemonSocket(bed_->runtime_dir()); }

  /// Registers a job without a program; it lives as long as the result.
  struct Registration {
    cli::DaemonClient launcher;
    cli::JobGrant grant;
  };
  static Registration Register() {
    Result<cli::DaemonClient> launcher = cli::DaemonClient::Connect(DaemonSocket());
    if (!launcher.ok()) throw std::runtime_error(launcher.status().message());
    Result<cli::JobGrant> grant = launcher->Register({2 << 20, 0, 0, "hostile"});
    if (!grant.ok()) throw std::runtime_error(grant.status().message());
    return {std::move(*launcher), std::move(*grant)};
  }

  static void ExpectAlive() {
    EXPECT_NO_THROW({ EXPECT_TRUE(bed_->Status().contains("jobs")); });
  }

  static TestBed* bed_;
  static Peer* peer_;
};
TestBed* HostileClient::bed_ = nullptr;
Peer* HostileClient::peer_ = nullptr;

std::vector<uint8_t> RandomBytes(std::mt19937& random, size_t size) {
  std::vector<uint8_t> bytes(size);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
  return bytes;
}

/// Frames that are wrong in one way or another, the same for every run.
std::vector<std::vector<uint8_t>> BadFrames(uint32_t seed, const std::vector<uint8_t>& hello) {
  std::mt19937 random(seed);
  std::vector<std::vector<uint8_t>> frames;
  for (const size_t size : {1u, 8u, 15u, 16u, 100u, 5000u})
    frames.push_back(RandomBytes(random, size));
  constexpr uint16_t kTypes[] = {1, 2, 3, 4, 5, 6, 7, 32, 34, 64, 65, 66, 999};
  for (const uint16_t type : kTypes) {
    // Right header, too short, random or overlong body.
    for (const size_t body : {size_t{0}, size_t{4}, size_t{24}, size_t{200}, size_t{4200}}) {
      frames.push_back(FrameBytes(static_cast<FrameType>(type), RandomBytes(random, body)));
    }
  }
  std::vector<uint8_t> lies = hello;
  lies[8] = 0xff;  // the length in the header
  frames.push_back(lies);
  lies = hello;
  lies.resize(lies.size() / 2);
  frames.push_back(lies);
  lies = hello;
  lies[16] = 0x7f;  // the major version
  frames.push_back(lies);
  // More than a frame may have.
  frames.push_back(FrameBytes(FrameType::kRelease, RandomBytes(random, protocol::kMaxFrameBytes)));
  frames.push_back(RandomBytes(random, 60'000));
  return frames;
}

TEST_F(HostileClient, GarbageOnTheDaemonsSocketEndsThatConnectionOnly) {
  for (const auto& frame : BadFrames(1, Hello())) {
    const RawClient client(DaemonSocket());
    client.Send(frame);
    const std::optional<RawClient::Answer> answer = client.Receive(kAnswerMs);
    ASSERT_TRUE(answer) << "no answer to " << frame.size() << " bytes";
    // Only a well-formed Register or Status deserves a connection that goes on.
    const bool served = !answer->bytes.empty() && (answer->type() == FrameType::kRegistered ||
                                                   answer->type() == FrameType::kStatusReply);
    EXPECT_TRUE(served || client.AwaitClose(kAnswerMs).has_value());
  }
  ExpectAlive();
}

TEST_F(HostileClient, GarbageOnAJobsSocketEndsThatSessionWithAReason) {
  size_t reasons = 0;
  for (const auto& frame : BadFrames(2, Hello())) {
    const Registration job = Register();
    const RawClient client(job.grant.socket);
    client.Send(frame);
    const auto reason = client.AwaitClose(kAnswerMs);
    ASSERT_TRUE(reason) << "a session goes on after " << frame.size() << " bytes";
    reasons += !reason->empty();
  }
  EXPECT_GT(reasons, BadFrames(2, Hello()).size() / 2);
  ExpectAlive();
}

TEST_F(HostileClient, GarbageAfterHelloEndsThatSessionWithAReason) {
  for (const auto& frame : BadFrames(3, Hello())) {
    if (frame == FrameBytes(FrameType::kReady, {})) continue;  // which is what is to come
    const Registration job = Register();
    const RawClient client(job.grant.socket);
    ASSERT_TRUE(client.Send(Hello()));
    const auto welcome = client.Receive(kAnswerMs);
    ASSERT_TRUE(welcome && welcome->type() == FrameType::kWelcome);
    client.Send(frame);
    EXPECT_TRUE(client.AwaitClose(kAnswerMs).has_value())
        << "a session goes on after " << frame.size() << " bytes of type "
        << (frame.size() > 4 ? frame[4] : 0);
  }
  ExpectAlive();
}

TEST_F(HostileClient, PagesCannotBeShrunkNorTheDaemonsBeWritten) {
  const Registration job = Register();
  const RawClient client(job.grant.socket);
  ASSERT_TRUE(client.Send(Hello()));
  const auto welcome = client.Receive(kAnswerMs);
  ASSERT_TRUE(welcome && welcome->type() == FrameType::kWelcome);
  ASSERT_EQ(welcome->fds.size(), 4u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_NE(::ftruncate(welcome->fds[i].get(), 0), 0) << "page " << i << " was shrunk";
    EXPECT_NE(::ftruncate(welcome->fds[i].get(), 1 << 24), 0) << "page " << i << " was grown";
  }
  void* mapped =
      ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, welcome->fds[2].get(), 0);
  EXPECT_EQ(mapped, MAP_FAILED) << "the daemon's page can be written";
  ExpectAlive();
}

TEST_F(HostileClient, GivingBackWhatOthersHoldIsRefused) {
  const Registration job = Register();
  const RawClient client(job.grant.socket);
  ASSERT_TRUE(client.Send(Hello()));
  ASSERT_TRUE(client.Receive(kAnswerMs));
  ASSERT_TRUE(client.Send(FrameBytes(FrameType::kReady, {})));
  // No fence, one extent: the whole pool, which the peer holds a part of.
  std::vector<uint8_t> body(offsetof(protocol::Release, extent) - sizeof(protocol::Header) +
                            sizeof(protocol::Extent));
  const uint32_t counts[] = {0, 1};
  const protocol::Extent everything = {0, 64};
  std::memcpy(body.data(), counts, sizeof counts);
  std::memcpy(body.data() + body.size() - sizeof everything, &everything, sizeof everything);
  ASSERT_TRUE(client.Send(FrameBytes(FrameType::kRelease, body)));
  const auto reason = client.AwaitClose(kAnswerMs);
  ASSERT_TRUE(reason);
  EXPECT_NE(*reason, "");
  ExpectAlive();
}

TEST_F(HostileClient, DescriptorsThatNobodyAskedForAreNotKept) {
  const auto open_files = [] {
    const std::string folder = "/proc/" + std::to_string(bed_->daemon_pid()) + "/fd";
    size_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      count += !entry.path().empty();
    }
    return count;
  };
  bed_->Status();
  const size_t before = open_files();
  for (int i = 0; i < 20; ++i) {
    const RawClient client(DaemonSocket());
    const UniqueFd file(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    client.SendWithFd(FrameBytes(FrameType::kStatus, {}), file.get());
    ASSERT_TRUE(client.Receive(kAnswerMs));
  }
  bed_->Status();
  EXPECT_LE(open_files(), before + 2);
}

TEST_F(HostileClient, ASecondSessionOfAJobIsRefusedWithAReason) {
  const Registration job = Register();
  const RawClient first(job.grant.socket);
  ASSERT_TRUE(first.Send(Hello()));
  ASSERT_TRUE(first.Receive(kAnswerMs));
  const RawClient second(job.grant.socket);
  second.Send(Hello());
  const auto reason = second.AwaitClose(kAnswerMs);
  ASSERT_TRUE(reason);
  EXPECT_NE(reason->find("process"), std::string::npos) << *reason;
}

}  // namespace
}  // namespace sluice::testing
