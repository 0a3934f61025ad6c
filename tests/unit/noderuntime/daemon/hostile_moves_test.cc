// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// A client that gives memory back while it is copied to host memory and back, over the daemon's
// sockets: its session ends and nothing else, and each byte of its neighbour is what that one
// wrote. Copies begin and end when the test says so.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <map>

#include "intercept/protocol/page_access.h"
#include "noderuntime/daemon/daemon.h"
#include "noderuntime/eventlog/record_json.h"
#include "scheduler/audit/audit.h"
#include "tests/support/fake_gpu.h"
#include "tests/unit/noderuntime/support/scripted_client.h"

namespace sluice::noded {
namespace {

using protocol::FrameType;
using scheduler::Phase;
using scheduler::UnitState;
using testing::ScriptedClient;

constexpr uint64_t kUnit = 4096;
constexpr uint32_t kPoolUnits = 28;
constexpr uint32_t kLayers = 16;
constexpr uint32_t kBase = 4;
constexpr flow::JobId kHostile = 1;
constexpr flow::JobId kHonest = 2;
constexpr flow::JobId kNewcomer = 3;

/// A page of a session, mapped.
template <typename Page>
class Mapped {
 public:
  Mapped(const UniqueFd& fd, int protection)
      : at_(::mmap(nullptr, sizeof(Page), protection, MAP_SHARED, fd.get(), 0)) {
    EXPECT_NE(at_, MAP_FAILED);
  }
  ~Mapped() { ::munmap(at_, sizeof(Page)); }
  Mapped(const Mapped&) = delete;
  Mapped& operator=(const Mapped&) = delete;
  Page& operator*() const { return *static_cast<Page*>(at_); }
  Page* operator->() const { return static_cast<Page*>(at_); }

 private:
  void* at_;
};

/// A job that is played frame by frame.
struct Player {
  Player(ScriptedClient registers, ScriptedClient speaks, const ScriptedClient::Received& welcome)
      : launcher(std::move(registers)),
        client(std::move(speaks)),
        marks(welcome.fds[0], PROT_READ | PROT_WRITE),
        page(welcome.fds[1], PROT_READ | PROT_WRITE),
        daemon(welcome.fds[2], PROT_READ) {}

  void Push(protocol::OpKind kind, uint64_t value, uint32_t detail = 0) {
    protocol::PushRecord(*page, *daemon, cached_tail,
                         {static_cast<uint8_t>(kind), 0, 0, detail, value});
  }
  /// Blocks one behind the other and back, each with a launch.
  void Iterate() {
    const bool timed = (daemon->flags.load() & protocol::kWantTimes) != 0;
    const auto launch = [&](uint64_t function) {
      Push(protocol::OpKind::kLaunch, function, launches);
      if (timed) Push(protocol::OpKind::kLaunchTime, 50'000, launches);
      ++launches;
    };
    for (uint32_t i = 0; i < kLayers; ++i) {
      Push(protocol::OpKind::kAlloc, kUnit);
      launch(100 + i);
    }
    for (uint32_t i = kLayers; i-- > 0;) {
      launch(200 + i);
      Push(protocol::OpKind::kFree, kUnit);
    }
  }
  uint32_t ProfileId() const {
    auto image = std::make_unique<protocol::ProfileImage>();
    return protocol::ReadProfile(*daemon, image.get()) ? image->profile_id : 0;
  }

  ScriptedClient launcher;
  ScriptedClient client;
  Mapped<protocol::MarkPage> marks;
  Mapped<protocol::ClientPage> page;
  Mapped<const protocol::DaemonPage> daemon;
  uint64_t cached_tail = 0;
  uint32_t launches = 0;
  uint32_t seq = 0;
  uint64_t iteration = 0;
  uint32_t profile = 0;
  flow::Extents base;
};

class HostileMovesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    device_.facts.name = "fake";
    device_.facts.uuid = {9, 8, 7};
    device_.facts.total_bytes = 2 * kPoolUnits * kUnit;
    device_.facts.granularity = kUnit;
    device_.holds_copies = true;
    char dir[] = "/tmp/sluice-noded-test-XXXXXX";
    ASSERT_NE(::mkdtemp(dir), nullptr);
    dir_ = dir;
    options_.runtime_dir = dir_ + "/run";
    options_.unit_bytes = kUnit;
    options_.handle_bytes = 4 * kUnit;
    options_.pool_bytes = kPoolUnits * kUnit;
    options_.host_memory_bytes = kPoolUnits * kUnit;
    options_.residents = "1";
    options_.slice_s = 3600;  // a newcomer ends it
    options_.event_log = dir_ + "/events";
  }
  void TearDown() override {
    daemon_.reset();
    EXPECT_EQ(device_.host_bytes(), 0u);
    EXPECT_EQ(device_.violations(), 0);
    std::filesystem::remove_all(dir_);
  }

  ::testing::AssertionResult Until(const std::function<bool()>& done) {
    for (int i = 0; i < 20'000; ++i) {
      if (done()) return ::testing::AssertionSuccess();
      const Result<bool> goes_on = daemon_->RunOnce(1'000'000);
      if (!goes_on.ok()) return ::testing::AssertionFailure() << goes_on.status().message();
    }
    return ::testing::AssertionFailure() << "not in time";
  }
  /// The next frame of this type; others before it are read over.
  template <typename Frame>
  std::optional<Frame> Await(Player& player, FrameType type) {
    std::optional<Frame> found;
    EXPECT_TRUE(Until([&] {
      const auto frame = player.client.Receive();
      if (frame.has_value() && frame->type() == type) found = frame->template As<Frame>();
      return found.has_value() || player.client.closed();
    })) << "frame "
        << static_cast<int>(type);
    EXPECT_TRUE(found.has_value()) << "closed before a frame " << static_cast<int>(type);
    return found;
  }

  void Join(flow::JobId job) {
    ScriptedClient launcher = ScriptedClient::Connect(options_.runtime_dir + "/noded.sock");
    protocol::Register wanted = {};
    wanted.limit_bytes = (kPoolUnits - 2 * kBase) * kUnit;
    wanted.request_bytes = request_ * kUnit;
    std::strcpy(wanted.name, "a job");
    launcher.Send(wanted, FrameType::kRegister, 5);
    std::optional<ScriptedClient::Received> frame;
    const auto next = [&](ScriptedClient& from) {
      EXPECT_TRUE(Until([&] { return (frame = from.Receive()).has_value() || from.closed(); }));
      return frame.has_value();
    };
    ASSERT_TRUE(next(launcher));
    ASSERT_EQ(frame->As<protocol::Registered>().job, job);
    ScriptedClient client = ScriptedClient::Connect(frame->As<protocol::Registered>().path);
    protocol::Hello hello = ScriptedClient::MakeHello(device_.info().uuid);
    hello.minor = protocol::kMinor;
    client.Send(hello, FrameType::kHello);
    ASSERT_TRUE(next(client));
    ASSERT_EQ(frame->type(), FrameType::kWelcome);
    const ScriptedClient::Received welcome = std::move(*frame);
    ASSERT_TRUE(next(client));
    ASSERT_EQ(frame->type(), FrameType::kHandles);
    client.Ready();
    players_.try_emplace(job, std::move(launcher), std::move(client), welcome);
    ASSERT_TRUE(Until([&] { return daemon_->flow().Find(job) != nullptr; }));
  }
  const scheduler::Job& Known(flow::JobId job) { return *daemon_->flow().ledger().Find(job); }
  flow::Extents Leased(flow::JobId job) {
    return daemon_->flow().ledger().map().Held(job, UnitState::kLeased);
  }
  bool Lease(flow::JobId job, uint32_t units) {
    Player& player = players_.at(job);
    player.client.Lease(units, ++player.seq);
    return Await<protocol::Grant>(player, FrameType::kGrant).has_value();
  }
  static std::vector<protocol::Extent> Wire(const flow::Extents& extents) {
    std::vector<protocol::Extent> wire;
    for (const auto& extent : extents) wire.push_back({extent.offset, extent.length});
    return wire;
  }
  /// Measured, with a profile, and at its gate 0 with its base.
  void Ready(flow::JobId job) {
    if (!players_.contains(job)) {
      ASSERT_NO_FATAL_FAILURE(Join(job));
    }
    Player& player = players_.at(job);
    ASSERT_TRUE(Lease(job, kBase));
    player.base = Leased(job);
    player.Push(protocol::OpKind::kAlloc, kBase * kUnit);
    ASSERT_TRUE(Lease(job, kLayers));
    ASSERT_TRUE(Until([&] {
      if (player.page->head.load() == player.daemon->tail.load()) player.Iterate();
      player.profile = player.ProfileId();
      return player.profile != 0;
    }));
    ToGateZero(job);
  }
  void ToGateZero(flow::JobId job) {
    Player& player = players_.at(job);
    const flow::Extents rest = scheduler::Subtract(Leased(job), player.base);
    if (!rest.empty()) player.client.Release(Wire(rest));
    protocol::Gate gate = {};
    gate.profile = player.profile;
    gate.iteration = player.iteration++;
    gate.drained = 1;
    player.client.Send(gate, FrameType::kGate, ++player.seq);
  }
  void Fill(const flow::Extents& extents, std::byte with) {
    for (const auto& extent : extents) {
      std::fill_n(device_.pool.begin() + static_cast<std::ptrdiff_t>(extent.offset * kUnit),
                  extent.length * kUnit, with);
    }
  }
  /// How many bytes of the extents are something else.
  size_t Others(const flow::Extents& extents, std::byte than) {
    size_t others = 0;
    for (const auto& extent : extents) {
      const auto* const begin = device_.pool.data() + extent.offset * kUnit;
      others += extent.length * kUnit -
                static_cast<size_t>(std::count(begin, begin + extent.length * kUnit, than));
    }
    return others;
  }

  /// The hostile job is asked to stand still at its trough, its neighbour is in its iteration.
  void Ask(const flow::FaultPlan& faults = {}) {
    Result<std::unique_ptr<Daemon>> daemon = Daemon::Create(options_, &device_, faults);
    ASSERT_TRUE(daemon.ok()) << daemon.status().message();
    daemon_ = std::move(*daemon);
    ASSERT_NO_FATAL_FAILURE(Ready(kHostile));
    ASSERT_TRUE(Await<protocol::Grant>(players_.at(kHostile), FrameType::kGrant)) << "its gate";
    ASSERT_NO_FATAL_FAILURE(Join(kHonest));
    ToGateZero(kHostile);
    ASSERT_NO_FATAL_FAILURE(Ready(kHonest));
    ASSERT_TRUE(Await<protocol::Quiesce>(players_.at(kHostile), FrameType::kQuiesce));
    Fill(players_.at(kHostile).base, kOld);
  }
  void Quiet() const {
    const Player& player = players_.at(kHostile);
    player.client.Send(protocol::Quiet{}, FrameType::kQuiet, player.seq);
  }
  void Leave() {
    Quiet();
    ASSERT_TRUE(Until([&] { return device_.under_way() == 1; }));
  }
  void BeAway() {
    ASSERT_NO_FATAL_FAILURE(Leave());
    device_.EndOldest();
    ASSERT_TRUE(Until([&] { return Known(kHostile).phase == Phase::kEvicted; }));
  }
  void NeighbourTakesAll() {
    ASSERT_TRUE(Await<protocol::Grant>(players_.at(kHonest), FrameType::kGrant)) << "its gate";
    while (Known(kHonest).leased < Known(kHonest).terms.claim) ASSERT_TRUE(Lease(kHonest, 1));
    Fill(Leased(kHonest), kNew);
  }
  /// Somebody who wants to begin ends the slice.
  void Return() {
    ASSERT_NO_FATAL_FAILURE(Join(kNewcomer));
    ToGateZero(kHonest);
    ASSERT_TRUE(Until([&] { return device_.under_way() == 1; }));
    players_.erase(kNewcomer);
  }
  void ExpectRelease(const std::string& reason) {
    Player& player = players_.at(kHostile);
    player.client.Release({{player.base.front().offset, 1}});
    const auto close = Await<protocol::Close>(player, FrameType::kClose);
    ASSERT_TRUE(close.has_value());
    EXPECT_NE(std::string(close->text).find(reason), std::string::npos) << close->text;
    EXPECT_TRUE(Until([&] { return daemon_->flow().Find(kHostile) == nullptr; }));
    EXPECT_EQ(device_.under_way(), 0u);
  }
  /// Its neighbour goes on, and has what it wrote.
  void ExpectUnharmed() {
    EXPECT_EQ(Others(Leased(kHonest), kNew), 0u);
    ToGateZero(kHonest);
    EXPECT_TRUE(Await<protocol::Grant>(players_.at(kHonest), FrameType::kGrant));
    EXPECT_EQ(Others(Leased(kHonest), kNew), 0u);
    ExpectLog(true);
  }
  scheduler::AuditReport ExpectLog(bool sound) {
    const auto records = eventlog::ReadLogFile(options_.event_log);
    EXPECT_TRUE(records.ok()) << records.status().message();
    const scheduler::AuditReport report = scheduler::Audit(*records);
    EXPECT_EQ(report.ok(), sound);
    if (!sound) return report;
    for (const auto& violation : report.violations) {
      ADD_FAILURE() << "line " << violation.record + 1 << ": " << violation.text;
    }
    return report;
  }

  uint32_t request_ = kBase;
  static constexpr std::byte kOld{0x11};
  static constexpr std::byte kNew{0x22};
  static constexpr const char* kBreach = "Release from a job whose memory is moved";
  std::string dir_;
  config::Options options_;
  testing::FakeGpu device_{kPoolUnits * kUnit};
  std::unique_ptr<Daemon> daemon_;
  std::map<flow::JobId, Player> players_;
};

TEST_F(HostileMovesTest, ReleaseWhileItIsCopiedOut) {
  ASSERT_NO_FATAL_FAILURE(Ask());
  ASSERT_NO_FATAL_FAILURE(Leave());
  ExpectRelease(kBreach);
  ASSERT_NO_FATAL_FAILURE(NeighbourTakesAll());
  ExpectUnharmed();
}

TEST_F(HostileMovesTest, ReleaseWhileItIsAway) {
  ASSERT_NO_FATAL_FAILURE(Ask());
  ASSERT_NO_FATAL_FAILURE(BeAway());
  ASSERT_NO_FATAL_FAILURE(NeighbourTakesAll());
  ExpectRelease(kBreach);
  ExpectUnharmed();
}

TEST_F(HostileMovesTest, ReleaseWhileItIsCopiedBack) {
  ASSERT_NO_FATAL_FAILURE(Ask());
  ASSERT_NO_FATAL_FAILURE(BeAway());
  ASSERT_NO_FATAL_FAILURE(NeighbourTakesAll());
  ASSERT_NO_FATAL_FAILURE(Return());
  ExpectRelease(kBreach);
  ASSERT_TRUE(Await<protocol::Grant>(players_.at(kHonest), FrameType::kGrant)) << "its next gate";
  ExpectUnharmed();
}

/// What the two checks keep from happening, and that the log would tell.
TEST_F(HostileMovesTest, WithoutTheChecksTheLogTellsOfLostBytes) {
  flow::FaultPlan faults;
  faults.release_moved = faults.skip_comparison = true;
  options_.slice_s = 0;
  request_ = 1;
  ASSERT_NO_FATAL_FAILURE(Ask(faults));
  ASSERT_NO_FATAL_FAILURE(Leave());
  const flow::Extents stays = {{players_.at(kHostile).base.front().offset, 1}};
  const flow::Extents given = scheduler::Subtract(players_.at(kHostile).base, stays);
  players_.at(kHostile).client.Release(Wire(given));
  ASSERT_TRUE(Until([&] { return Known(kHostile).leased == 1; }));
  // All but what that one keeps and one unit.
  protocol::SetLimit raise = {};
  raise.job = kHonest;
  raise.bytes = (kPoolUnits - 1) * kUnit;
  players_.at(kHonest).launcher.Send(raise, FrameType::kSetLimit);
  ASSERT_TRUE(Until([&] { return Known(kHonest).limit == kPoolUnits - 1; }));
  ASSERT_TRUE(Await<protocol::Grant>(players_.at(kHonest), FrameType::kGrant)) << "its gate";
  while (Known(kHonest).leased < kPoolUnits - 2) ASSERT_TRUE(Lease(kHonest, 1));
  const flow::Extents taken = scheduler::Intersect(Leased(kHonest), given);
  ASSERT_FALSE(taken.empty());
  Fill(taken, kNew);
  device_.EndOldest();
  ASSERT_TRUE(Until([&] { return device_.under_way() == 1; }));
  ASSERT_EQ(daemon_->flow().Find(kHostile)->moving, flow::Moving::kReturning);
  device_.EndOldest();
  ASSERT_TRUE(Until([&] { return daemon_->flow().Find(kHostile)->moving == flow::Moving::kNot; }));
  EXPECT_GT(Others(taken, kNew), 0u) << "what its neighbour wrote is gone";
  std::string found;
  for (const auto& violation : ExpectLog(false).violations) found += violation.text + "\n";
  const std::string unit = "unit " + std::to_string(taken.front().offset);
  const std::vector<std::string> told = {
      "release of job 1 while its memory is moved",
      unit + " is granted to job 2 while it is copied for job 1",
      unit + " is overwritten with bytes of job 1 while job 2 holds it",
      " was copied out and is not evicted",
  };
  for (const std::string& text : told) {
    EXPECT_NE(found.find(text), std::string::npos) << text << " is not in:\n" << found;
  }
}

TEST_F(HostileMovesTest, WithoutThatEveryByteComesBack) {
  ASSERT_NO_FATAL_FAILURE(Ask());
  ASSERT_NO_FATAL_FAILURE(BeAway());
  ASSERT_NO_FATAL_FAILURE(NeighbourTakesAll());
  Fill(players_.at(kHostile).base, kNew);
  ASSERT_NO_FATAL_FAILURE(Return());
  device_.EndOldest();
  ASSERT_TRUE(Await<protocol::Grant>(players_.at(kHostile), FrameType::kGrant)) << "its gate";
  EXPECT_EQ(Others(players_.at(kHostile).base, kOld), 0u);
  ExpectLog(true);
}

}  // namespace
}  // namespace sluice::noded
