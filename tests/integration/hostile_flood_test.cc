// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// Clients that take what they can get, for as long as they can, beside a job that lends and
// borrows: it must go on, and compute what it computes alone. All of it is bounded.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "intercept/protocol/page_access.h"
#include "noderuntime/cli/daemon_client.h"
#include "noderuntime/session/session.h"
#include "tests/support/peer.h"
#include "tests/support/raw_client.h"

namespace sluice::testing {
namespace {

using protocol::FrameType;

constexpr int kAnswerMs = 20'000;
constexpr size_t kPeerIterations = 5;
constexpr int kPeerPatience = 4;  // times as long as a peer is waited for

/// The interesting part of a frame as bytes, its header made by FrameBytes.
template <typename Frame>
std::vector<uint8_t> Framed(FrameType type, const Frame& frame, size_t bytes = sizeof(Frame)) {
  const auto* at = reinterpret_cast<const uint8_t*>(&frame);
  return FrameBytes(type, {at + sizeof(protocol::Header), at + bytes});
}

class HostileFlood : public ::testing::Test {
 protected:
  HostileFlood() : bed_(Options()), peer_(bed_) {
    // This process plays thousands of clients.
    rlimit files = {};
    ::getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &files);
    peer_.AwaitProfile();
  }
  static BedOptions Options() {
    BedOptions options;
    options.gpu_memory = "64MiB";
    options.pool = "16MiB";
    // None of the clients here launches anything, and others wait for a job until it has shown what
    // it is (I7), or for this long.
    options.noded_flags = {"--patience", "2"};
    return options;
  }
  void TearDown() override {
    peer_.FinishAndCompare();
    bed_.StopDaemon();
    // Each job's burst and its line in a second, and those of all launchers. The daemon has some
    // of its own.
    const auto seconds =
        std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - begin_);
    const auto most = static_cast<size_t>(2 * (40 + seconds.count()) + 200 + 10 * seconds.count());
    EXPECT_LE(LogLines().size(), most + 20) << "of the daemon's log";
    const scheduler::AuditReport report = bed_.log().Audit();
    EXPECT_TRUE(report.ok()) << Violations(report);
    EXPECT_EQ(bed_.GpuStats().oracle_violations, 0u);
  }

  std::vector<std::string> LogLines() const {
    std::ifstream file(bed_.daemon_log());
    std::vector<std::string> lines;
    for (std::string line; std::getline(file, line);) lines.push_back(line);
    return lines;
  }
  std::string DaemonSocket() const { return cli::DaemonSocket(bed_.runtime_dir()); }
  struct Registration {
    cli::DaemonClient launcher;
    cli::JobGrant grant;
  };
  Registration Register() const {
    Result<cli::DaemonClient> launcher = cli::DaemonClient::Connect(DaemonSocket());
    if (!launcher.ok()) throw std::runtime_error(launcher.status().message());
    Result<cli::JobGrant> grant = launcher->Register({2 << 20, 0, 0, "hostile"});
    if (!grant.ok()) throw std::runtime_error(grant.status().message());
    return {std::move(*launcher), std::move(*grant)};
  }
  std::vector<uint8_t> Hello() const {
    return HelloBytes(bed_.Status().at("gpu_uuid").get<std::string>());
  }
  /// A session that has its pages; `welcome` keeps them.
  RawClient Open(const Registration& job, RawClient::Answer* welcome) const {
    RawClient client(job.grant.socket);
    client.Send(Hello());
    std::optional<RawClient::Answer> answer = client.Receive(kAnswerMs);
    if (!answer || answer->fds.size() != 4) throw std::runtime_error("no Welcome");
    *welcome = std::move(*answer);
    client.Receive(kAnswerMs);
    client.Send(FrameBytes(FrameType::kReady, {}));
    return client;
  }
  /// The peer is granted what it asks for, while `attack` goes on in a thread of its own.
  void ExpectProgressUnder(const std::function<void()>& attack) {
    std::atomic<bool> over = false;
    std::thread attacker([&] {
      while (!over.load()) attack();
    });
    bool goes_on = false;
    for (int i = 0; i < kPeerPatience && !goes_on; ++i) {
      goes_on = peer_.AwaitIterations(kPeerIterations);
    }
    over = true;
    attacker.join();
    EXPECT_TRUE(goes_on) << "the peer stands still";
    EXPECT_TRUE(bed_.Status().contains("jobs"));
  }
  size_t DaemonFiles() const {
    const std::string folder = "/proc/" + std::to_string(bed_.daemon_pid()) + "/fd";
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(folder), {}));
  }

  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  TestBed bed_;
  Peer peer_;
};

TEST_F(HostileFlood, FramesWithoutEndLeaveThePeerItsTurn) {
  const Registration job = Register();
  protocol::Count count = {};
  count.family = static_cast<uint32_t>(protocol::Family::kHostPinned);
  const std::vector<uint8_t> frame = Framed(FrameType::kCount, count);
  RawClient::Answer welcome;
  std::optional<RawClient> client;
  size_t sent = 0;
  int sessions = 0;
  ExpectProgressUnder([&] {
    // Each session is a new job to wait for, so there are not many.
    if (!client.has_value() && sessions < 3) {
      client.emplace(Open(job, &welcome));
      ++sessions;
    }
    // Faster than it is read: the socket is full then.
    for (int i = 0; i < 1000 && client.has_value(); ++i) {
      if (client->Send(frame)) {
        ++sent;
      } else {
        client.reset();
      }
    }
  });
  EXPECT_GT(sent, 1000u);
  EXPECT_TRUE(client.has_value()) << "it is read later, not closed";
}

TEST_F(HostileFlood, RequestsWithoutEndLeaveThePeerItsTurn) {
  const Registration job = Register();
  RawClient::Answer welcome;
  const RawClient client = Open(job, &welcome);
  protocol::Charge charge = {};
  charge.family = static_cast<uint32_t>(protocol::Family::kArray);
  charge.bytes = uint64_t{1} << 40;  // denied, each time
  const std::vector<uint8_t> frame = Framed(FrameType::kCharge, charge);
  size_t answers = 0;
  ExpectProgressUnder([&] {
    if (client.Send(frame) && client.Receive(kAnswerMs).has_value()) ++answers;
  });
  EXPECT_GT(answers, 1000u);
}

// What it gets it gives back at once, and it never computes: to ask is no sign of life.
TEST_F(HostileFlood, UnitsBackAndForthWithoutEndLeaveThePeerItsTurn) {
  const Registration job = Register();
  RawClient::Answer welcome;
  const RawClient client = Open(job, &welcome);
  protocol::Lease lease = {};
  lease.units = lease.contiguous = 1;
  const std::vector<uint8_t> frame = Framed(FrameType::kLease, lease);
  size_t given_back = 0;
  ExpectProgressUnder([&] {
    if (!client.Send(frame)) return;
    const std::optional<RawClient::Answer> answer = client.Receive(kAnswerMs);
    if (!answer || answer->type() != FrameType::kGrant) return;
    protocol::Grant grant = {};
    std::memcpy(&grant, answer->bytes.data(), std::min(sizeof grant, answer->bytes.size()));
    if (grant.extents == 0) return;
    protocol::Release release = {};
    release.extents = 1;
    release.extent[0] = grant.extent[0];
    const size_t bytes = offsetof(protocol::Release, extent) + sizeof(protocol::Extent);
    if (client.Send(Framed(FrameType::kRelease, release, bytes))) ++given_back;
  });
  EXPECT_GT(given_back, 100u);
}

// A line of the log for each would fill the disk.
TEST_F(HostileFlood, WhatIsClosedWithoutEndIsNotToldWithoutEnd) {
  const Registration job = Register();
  const std::vector<uint8_t> garbage(64, 0x5a);
  for (int i = 0; i < 1'000; ++i) {
    RawClient(job.grant.socket).Send(garbage);
    RawClient(DaemonSocket()).Send(garbage);
  }
  EXPECT_TRUE(peer_.AwaitIterations(kPeerIterations));
  const auto said = [this](const std::string& text) {
    const std::vector<std::string> lines = LogLines();
    return std::any_of(lines.begin(), lines.end(), [&](const std::string& line) {
      return line.find(text) != std::string::npos;
    });
  };
  const std::string of_job = "job " + std::to_string(job.grant.job) + ": ";
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!(said("more lines of it were left out") && said("about launchers were left out")) &&
         std::chrono::steady_clock::now() < deadline) {
    ASSERT_TRUE(peer_.AwaitIterations(kPeerIterations));
  }
  EXPECT_TRUE(said(of_job)) << "nothing at all is said of it";
  EXPECT_TRUE(said("more lines of it were left out"));
  EXPECT_TRUE(said("about launchers were left out"));
}

// The event log leaves nothing out: what counts is the job, however often it comes back.
TEST_F(HostileFlood, SessionsWithoutEndShareTheirJobsPartOfTheEventLog) {
  using session::Session;
  constexpr uint64_t kOfEach = Session::kLoggedBurst * 3 / 4;
  const Registration job = Register();
  protocol::Uncharge uncharge = {};
  uncharge.family = static_cast<uint32_t>(protocol::Family::kArray);
  const std::vector<uint8_t> frame = Framed(FrameType::kUncharge, uncharge);
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 2; ++i) {
    RawClient::Answer welcome;
    const RawClient client = Open(job, &welcome);
    for (uint64_t sent = 0; sent < kOfEach; ++sent) ASSERT_TRUE(client.Send(frame));
    ASSERT_TRUE(client.Send(FrameBytes(FrameType::kBye, {})));
    ASSERT_TRUE(client.AwaitClose(kAnswerMs));
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  EXPECT_LE(static_cast<double>(bed_.log().Count(scheduler::EventKind::kOutside, job.grant.job)),
            Session::kLoggedBurst + Session::kLoggedPerSecond * took.count());
  EXPECT_TRUE(peer_.AwaitIterations(kPeerIterations));
}

TEST_F(HostileFlood, AClientThatNeverReadsLosesItsSessionAlone) {
  const Registration job = Register();
  RawClient::Answer welcome;
  const RawClient client = Open(job, &welcome);
  protocol::Charge charge = {};
  charge.family = static_cast<uint32_t>(protocol::Family::kArray);
  const std::vector<uint8_t> frame = Framed(FrameType::kCharge, charge);
  bool open = true;
  for (int i = 0; i < 100'000 && open; ++i) open = client.Send(frame);
  EXPECT_FALSE(open) << "its answers are kept for it without end";
  EXPECT_TRUE(peer_.AwaitIterations(kPeerIterations));
  const Registration next = Register();
  RawClient::Answer another;
  Open(next, &another);
}

TEST_F(HostileFlood, ConnectionsWithoutEndTakeNobodysRoom) {
  const size_t before = DaemonFiles();
  const Registration hostile = Register();
  std::vector<RawClient> silent;
  for (int i = 0; i < 2'000; ++i) silent.emplace_back(hostile.grant.socket);
  // Whoever connects to the daemon and says nothing, in numbers above what it keeps at once.
  std::vector<RawClient> idle;
  for (int i = 0; i < 4'500; ++i) idle.emplace_back(DaemonSocket());
  const Registration next = Register();
  RawClient::Answer welcome;
  Open(next, &welcome);
  EXPECT_LT(DaemonFiles(), before + 4'400) << "each connection of the one job costs two";
  EXPECT_TRUE(peer_.AwaitIterations(kPeerIterations));
  silent.clear();
  idle.clear();
  EXPECT_TRUE(bed_.Status().contains("jobs"));
}

TEST_F(HostileFlood, DescriptorsWithoutEndAreNotKept) {
  const size_t before = DaemonFiles();
  const Registration job = Register();
  RawClient::Answer welcome;
  const RawClient client = Open(job, &welcome);
  const UniqueFd file(::memfd_create("gift", MFD_CLOEXEC));
  protocol::Count count = {};
  count.family = static_cast<uint32_t>(protocol::Family::kImported);
  const std::vector<uint8_t> frame = Framed(FrameType::kCount, count);
  ExpectProgressUnder([&] { client.SendWithFd(frame, file.get()); });
  EXPECT_LE(DaemonFiles(), before + 16);
}

TEST_F(HostileFlood, TornPagesAndEarlyFencesHarmNobodyElse) {
  const Registration job = Register();
  RawClient::Answer welcome;
  const RawClient client = Open(job, &welcome);
  const auto map = [&](size_t fd, size_t bytes) {
    void* at =
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, welcome.fds.at(fd).get(), 0);
    if (at == MAP_FAILED) throw std::runtime_error("cannot map a page");
    return at;
  };
  auto* marks = static_cast<protocol::MarkPage*>(map(0, sizeof(protocol::MarkPage)));
  auto* page = static_cast<protocol::ClientPage*>(map(1, sizeof(protocol::ClientPage)));
  std::mt19937_64 random(1);
  ExpectProgressUnder([&] {
    for (int i = 0; i < 1000; ++i) {
      const uint64_t any = random();
      protocol::OpRecord record = {static_cast<uint8_t>(any % 9), 0, 0, 0, any};
      protocol::StoreRecord(page->ring[any % protocol::kRingRecords], record);
      marks->mark[any % protocol::kStreamSlots].store(any);
      page->lost.store(any);
      page->live_bytes.store(any);
      page->head.store(any % 3 == 0 ? any : page->head.load() + any % 1024);
    }
  });
  ::munmap(marks, sizeof *marks);
  ::munmap(page, sizeof *page);
}

}  // namespace
}  // namespace sluice::testing
