// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "noderuntime/eventlog/record_json.h"
#include "tests/unit/noderuntime/daemon/daemon_fixture.h"

namespace sluice::noded {
namespace {

TEST_F(DaemonTest, AJobFromItsRegistrationToItsEnd) {
  Up();
  EXPECT_EQ(device_.poisoned.size(), 1u) << "fresh memory is overwritten too";
  ScriptedClient launcher = Launcher();
  const protocol::Registered registered = Register(launcher);
  EXPECT_EQ(registered.status, 0u);
  EXPECT_EQ(std::string(registered.path), options_.runtime_dir + "/jobs/1/sluice.sock");
  EXPECT_EQ(Status()["jobs"][0]["phase"], "registered");

  ScriptedClient::Received welcome;
  ScriptedClient client = Open(registered.path, &welcome);
  client.Lease(3, 11, 3);
  const auto grant = Await(client);
  ASSERT_TRUE(grant.has_value() && grant->type() == FrameType::kGrant);
  EXPECT_EQ(grant->As<protocol::Grant>().header.seq, 11u);
  EXPECT_EQ(grant->As<protocol::Grant>().extents, 1u);
  EXPECT_EQ(grant->As<protocol::Grant>().extent[0].length, 3u);
  nlohmann::json job = Status()["jobs"][0];
  EXPECT_EQ(job["pid"], ::getpid());
  EXPECT_EQ(job["held_bytes"], 3 * kUnit);
  EXPECT_EQ(job["waiting"], nullptr);
  EXPECT_EQ(Status()["free_bytes"], 29 * kUnit);

  client.Release({{1, 2}});
  EXPECT_TRUE(Until([&] { return device_.poisoned.size() == 2; }));
  EXPECT_EQ(device_.poisoned[1], (std::pair<uint64_t, uint64_t>{kUnit, 2 * kUnit}));

  // The process (this one) lives on, so what it held stays in quarantine.
  client.HangUp();
  EXPECT_TRUE(Until([&] { return daemon_->flow().ledger().jobs()[0].quarantined == 1; }));
  launcher.HangUp();
  EXPECT_TRUE(Until([&] { return Status()["jobs"].size() == 1; }));
}

TEST_F(DaemonTest, BadRegistrationsNameTheFieldAndWhatIsAllowed) {
  Up();
  const auto reason = [this](uint64_t limit, uint64_t request, uint32_t gpu) {
    ScriptedClient launcher = Launcher();
    const protocol::Registered answer = Register(launcher, limit, request, gpu);
    EXPECT_NE(answer.status, 0u);
    return std::string(answer.path);
  };
  EXPECT_EQ(reason(0, 0, 3), "gpu 3: allowed: 0, the one that this daemon manages");
  EXPECT_EQ(reason(33 * kUnit, 0, 0),
            "limit 132.0 KiB: allowed: 4.0 KiB (a lease unit) to 128.0 KiB (the pool)");
  EXPECT_EQ(reason(0, 33 * kUnit, 0), "request 132.0 KiB: allowed: up to 128.0 KiB (the pool)");
  EXPECT_EQ(reason(2 * kUnit, 3 * kUnit, 0), "request 12.0 KiB: allowed: up to its limit, 8.0 KiB");
  EXPECT_TRUE(Status()["jobs"].empty());
}

// A reply that had to wait would name a descriptor that is closed, and by then somebody else's.
TEST_F(DaemonTest, WhoeverAsksAndDoesNotReadIsGivenNobodysDescriptors) {
  Up();
  ScriptedClient launcher = Launcher();
  const protocol::Registered registered = Register(launcher);
  ScriptedClient asker = Launcher();
  for (int i = 0; i < 400 && !asker.closed(); ++i) {
    protocol::Status ask = {};
    ask.header = session::MakeHeader(FrameType::kStatus, sizeof ask);
    (void)::send(asker.fd(), &ask, sizeof ask, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (i % 8 == 0) {
      ASSERT_TRUE(daemon_->RunOnce(0).ok());
    }
  }
  for (int i = 0; i < 50; ++i) ASSERT_TRUE(daemon_->RunOnce(0).ok());
  // Its pages and pipe take the numbers that are free by now.
  ScriptedClient client = Open(registered.path);
  size_t replies = 0;
  bool closed = false;
  for (int turn = 0; turn < 1000 && !closed; ++turn) {
    ASSERT_TRUE(daemon_->RunOnce(0).ok());
    while (const auto frame = asker.Receive()) {
      closed = closed || frame->type() == FrameType::kClose;
      for (const UniqueFd& fd : frame->fds) {
        char first = 0;
        EXPECT_EQ(::pread(fd.get(), &first, 1, 0), 1);
        EXPECT_EQ(first, '{') << "a descriptor that is no status";
        ++replies;
      }
    }
  }
  EXPECT_TRUE(closed) << "it was not told why it gets no more";
  EXPECT_EQ(replies, 1u) << "descriptors collect in its socket";
}

TEST_F(DaemonTest, ARecordingIsForWhoRegisteredTheJobToBeObserved) {
  Up();
  const auto why_none = [this](ScriptedClient& asker) {
    asker.Send(protocol::Recording{}, FrameType::kRecording);
    const auto frame = Await(asker);
    EXPECT_TRUE(frame.has_value() && frame->type() == FrameType::kRecordingReply);
    EXPECT_TRUE(frame->fds.empty());
    EXPECT_NE(frame->As<protocol::RecordingReply>().status, 0u);
    return std::string(frame->As<protocol::RecordingReply>().text);
  };
  ScriptedClient launcher = Launcher();
  Register(launcher);
  EXPECT_EQ(why_none(launcher),
            "the job was not to be observed, or its daemon was restarted since");

  ScriptedClient watcher = Launcher();
  const std::string path = Register(watcher, 0, 0, 0, protocol::kObserve).path;
  EXPECT_EQ(why_none(watcher), "the job has not used the GPU under Sluice");
  {
    ScriptedClient client = Open(path);
    client.Lease(1, 1);
    Await(client);
    EXPECT_EQ(why_none(watcher), "the job launched nothing on the GPU");
    client.HangUp();
  }
  EXPECT_TRUE(Until([&] { return daemon_->flow().Find(2) == nullptr; }));
  EXPECT_EQ(why_none(watcher), "the job launched nothing on the GPU") << "it has ended";

  ScriptedClient stranger = Launcher();
  stranger.Send(protocol::Recording{}, FrameType::kRecording);
  const auto frame = Await(stranger);
  ASSERT_TRUE(frame.has_value() && frame->type() == FrameType::kClose);
}

TEST_F(DaemonTest, ARegistrationEndsWithItsLauncher) {
  Up();
  ScriptedClient launcher = Launcher();
  const std::string path = Register(launcher).path;
  EXPECT_TRUE(std::filesystem::exists(path));
  launcher.HangUp();
  EXPECT_TRUE(Until([&] { return !std::filesystem::exists(path); }));
  EXPECT_FALSE(std::filesystem::exists(std::filesystem::path(path).parent_path()));
}

TEST_F(DaemonTest, GarbageClosesOneConnectionWithAReasonAndNothingElse) {
  Up();
  ScriptedClient launcher = Launcher();
  const std::string path = Register(launcher).path;
  ScriptedClient good = Open(path);

  ScriptedClient bad = Launcher();
  bad.SendBytes("garbage that is long enough", 27);
  auto frame = Await(bad);
  ASSERT_TRUE(frame.has_value() && frame->type() == FrameType::kClose);
  ScriptedClient second = ScriptedClient::Connect(path);
  second.SendBytes("x", 1);
  frame = Await(second);
  ASSERT_TRUE(frame.has_value() && frame->type() == FrameType::kClose);
  EXPECT_STREQ(frame->As<protocol::Close>().text, "a frame of 1 bytes; allowed: 16 to 8192");

  good.Lease(1, 1);
  frame = Await(good);
  EXPECT_TRUE(frame.has_value() && frame->type() == FrameType::kGrant);
  EXPECT_FALSE(launcher.Receive().has_value());
  EXPECT_FALSE(launcher.closed());
}

TEST_F(DaemonTest, ABreachInsideASessionClosesItAndQuarantinesItsMemory) {
  Up();
  ScriptedClient launcher = Launcher();
  ScriptedClient client = Open(Register(launcher).path);
  client.Lease(4, 1);
  ASSERT_TRUE(Await(client).has_value());
  client.Release({{20, 5}});
  const auto frame = Await(client);
  ASSERT_TRUE(frame.has_value() && frame->type() == FrameType::kClose);
  EXPECT_NE(std::string(frame->As<protocol::Close>().text).find("[20, +5)"), std::string::npos);
  EXPECT_EQ(daemon_->flow().ledger().jobs()[0].quarantined, 4u);
}

TEST_F(DaemonTest, ASecondProcessOfAJobIsRefusedWithAReason) {
  Up();
  ScriptedClient launcher = Launcher();
  const std::string path = Register(launcher).path;
  ScriptedClient first = Open(path);
  ScriptedClient second = ScriptedClient::Connect(path);
  second.Hello(device_.info().uuid);
  const auto frame = Await(second);
  ASSERT_TRUE(frame.has_value() && frame->type() == FrameType::kClose);
  const std::string text = frame->As<protocol::Close>().text;
  EXPECT_EQ(text.find("one process of a job at a time"), 0u);
  first.Lease(1, 1);
  EXPECT_EQ(Await(first)->type(), FrameType::kGrant);
  EXPECT_EQ(Status()["jobs"][0]["figures"]["refusals"]["second-process"], 1);
  daemon_.reset();
  const auto records = eventlog::ReadLogFile(options_.event_log);
  ASSERT_TRUE(records.ok()) << records.status().message();
  size_t denied = 0;
  for (const scheduler::Record& record : *records) {
    if (record.event != scheduler::EventKind::kDeny) continue;
    ++denied;
    EXPECT_EQ(record.reason, "second-process");
    EXPECT_EQ(record.text, text);
  }
  EXPECT_EQ(denied, 1u) << "what is counted is in the log";
}

/// Runs `body` in a child process, which then waits until the test ends it.
class ChildProcess {
 public:
  explicit ChildProcess(const std::function<void()>& body) {
    int ends[2];
    EXPECT_EQ(::pipe(ends), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::close(ends[0]);
      body();
      ::close(ends[1]);
      for (;;) ::pause();
    }
    ::close(ends[1]);
    done_.reset(ends[0]);
  }
  ~ChildProcess() { Kill(); }
  bool done() const {
    pollfd end = {done_.get(), POLLIN, 0};
    return ::poll(&end, 1, 0) == 1;
  }
  void Kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
  UniqueFd done_;
};

TEST_F(DaemonTest, AKilledJobsMemoryWaitsForItsForkedChildAndTheDriversList) {
  Up();
  ScriptedClient launcher = Launcher();
  const std::string path = Register(launcher).path;
  int kept[2];
  ASSERT_EQ(::pipe(kept), 0);
  // The child plays a client with blocking waits: the daemon runs in this process.
  ChildProcess job([&] {
    ScriptedClient client = ScriptedClient::Connect(path);
    client.Hello(device_.info().uuid);
    std::vector<UniqueFd> keep;
    const auto next = [&client] {
      for (;;) {
        pollfd readable = {client.fd(), POLLIN, 0};
        ::poll(&readable, 1, -1);
        if (auto frame = client.Receive()) return std::move(*frame);
      }
    };
    auto welcome = next();
    next();
    client.Ready();
    client.Lease(5, 1);
    next();
    // A forked worker inherits the liveness pipe and outlives the client; it ends with `kept`.
    if (::fork() == 0) {
      client.HangUp();
      char byte = 0;
      ::close(kept[1]);
      (void)!::read(kept[0], &byte, 1);
      ::_exit(0);
    }
    for (;;) ::pause();
  });
  ::close(kept[0]);
  EXPECT_TRUE(Until([&] { return Status()["free_bytes"] == 27 * kUnit; }));
  const pid_t pid = job.pid();
  device_.user = pid;
  job.Kill();
  const auto quarantined = [&] {
    const auto& jobs = daemon_->flow().ledger().jobs();
    return !jobs.empty() && jobs[0].quarantined == 5;
  };
  EXPECT_TRUE(Until(quarantined));
  for (int i = 0; i < 50; ++i) ASSERT_TRUE(daemon_->RunOnce(1'000'000).ok());
  EXPECT_TRUE(quarantined()) << "the worker holds the pipe";
  ::close(kept[1]);
  for (int i = 0; i < 50; ++i) ASSERT_TRUE(daemon_->RunOnce(1'000'000).ok());
  EXPECT_TRUE(quarantined()) << "the driver still knows the process";
  device_.user = -1;
  EXPECT_TRUE(Until([&] { return Status()["free_bytes"] == 32 * kUnit; }));
  EXPECT_EQ(device_.poisoned.back(), (std::pair<uint64_t, uint64_t>{0, 5 * kUnit}));
  launcher.HangUp();
  EXPECT_TRUE(Until([&] { return Status()["jobs"].empty(); }));
}

// A context that was destroyed gave everything back: the next session need not wait for the
// process.
TEST_F(DaemonTest, TheSameProcessMayStartOverWhenItHoldsNothing) {
  Up();
  ScriptedClient launcher = Launcher();
  const std::string path = Register(launcher).path;
  device_.user = ::getpid();
  {
    ScriptedClient client = Open(path);
    client.Lease(4, 1);
    ASSERT_TRUE(Await(client).has_value());
    client.Release({{0, 4}});
    client.Send(protocol::Bye{}, FrameType::kBye);
    EXPECT_TRUE(Until([&] { return daemon_->flow().ledger().jobs().empty(); }));
  }
  ScriptedClient again = Open(path);
  again.Lease(2, 1);
  EXPECT_EQ(Await(again)->type(), FrameType::kGrant);
  EXPECT_EQ(Status()["free_bytes"], 30 * kUnit);
}

TEST_F(AccountTest, GoesOnWithTheNextSession) {
  const nlohmann::json job = Status()["jobs"][0];
  EXPECT_EQ(job["phase"], "resting");
  EXPECT_EQ(job["outside"]["physical"], 2 * kUnit);
  // One that does not come to its end changes nothing.
  { ScriptedClient hasty = OpenNew(); }
  ScriptedClient client = OpenNew();
  EXPECT_EQ(Charged(), 2 * kUnit);
  client.Ready();
  EXPECT_TRUE(Until([&] { return daemon_->flow().ledger().Find(1) != nullptr; }));
  EXPECT_EQ(daemon_->flow().ledger().Find(1)->outside, 0u) << "nobody gave a limit";
  EXPECT_EQ(Charged(), 2 * kUnit);
  GiveBack(client, 2 * kUnit);
  EXPECT_TRUE(Until([&] { return Charged() == 0; }));
}

TEST_F(AccountTest, IsGivenBackWithoutASession) {
  GiveBack(ScriptedClient::Connect(path_), kUnit);
  EXPECT_TRUE(Until([&] { return Charged() == kUnit; }));
  launcher_.reset();
  EXPECT_TRUE(Until([&] { return Status()["jobs"].size() == 1; })) << "something is left";
  ScriptedClient greedy = ScriptedClient::Connect(path_);
  GiveBack(greedy, 2 * kUnit);
  const auto frame = Await(greedy);
  ASSERT_TRUE(frame.has_value() && frame->type() == FrameType::kClose);
  EXPECT_EQ(Charged(), kUnit);
  GiveBack(ScriptedClient::Connect(path_), kUnit);
  EXPECT_TRUE(Until([&] { return Status()["jobs"].empty(); }));
  EXPECT_EQ(Charged(), 0u);
}

// exec: the same process, a new library, and nothing that says when the driver is done with the old
// one.
TEST_F(DaemonTest, TheSameProcessMayNotStartOverWhileItHoldsMemory) {
  Up();
  ScriptedClient launcher = Launcher();
  const std::string path = Register(launcher).path;
  {
    ScriptedClient client = Open(path);
    client.Lease(4, 1);
    ASSERT_TRUE(Await(client).has_value());
  }
  EXPECT_TRUE(Until([&] { return daemon_->flow().ledger().jobs()[0].quarantined == 4; }));
  ScriptedClient again = ScriptedClient::Connect(path);
  again.Hello(device_.info().uuid);
  const auto frame = Await(again);
  ASSERT_TRUE(frame.has_value() && frame->type() == FrameType::kClose);
  EXPECT_NE(std::string(frame->As<protocol::Close>().text).find("left GPU memory behind"),
            std::string::npos);
  EXPECT_EQ(Status()["free_bytes"], 28 * kUnit);
}

TEST_F(DaemonTest, OneDaemonPerFolder) {
  Up();
  const auto second = Daemon::Create(options_, &device_, {});
  ASSERT_FALSE(second.ok());
  EXPECT_NE(second.status().message().find("another sluice-noded serves " + options_.runtime_dir),
            std::string::npos);
  EXPECT_EQ(Status()["jobs"].size(), 0u) << "the first one is not disturbed";
}

TEST_F(DaemonTest, AFolderThatOthersMayEnterIsRefused) {
  std::filesystem::create_directory(options_.runtime_dir);
  std::filesystem::permissions(options_.runtime_dir, std::filesystem::perms(0755));
  const auto daemon = Daemon::Create(options_, &device_, {});
  ASSERT_FALSE(daemon.ok());
  EXPECT_NE(daemon.status().message().find("mode 0700"), std::string::npos);
}

TEST_F(DaemonTest, EndsCleanly) {
  Up();
  ScriptedClient launcher = Launcher();
  ScriptedClient client = Open(Register(launcher).path);
  client.Lease(1, 1);
  ASSERT_TRUE(Await(client).has_value());
  daemon_.reset();
  const auto frame = client.Receive();
  ASSERT_TRUE(frame.has_value() && frame->type() == FrameType::kClose);
  EXPECT_FALSE(std::filesystem::exists(options_.runtime_dir + "/noded.sock"));
  EXPECT_FALSE(std::filesystem::exists(options_.runtime_dir + "/jobs"));
  const auto log = eventlog::ReadLogFile(options_.event_log);
  ASSERT_TRUE(log.ok()) << log.status().message();
  ASSERT_GE(log->size(), 4u);
  EXPECT_EQ(log->front().event, scheduler::EventKind::kPool);
  EXPECT_EQ(log->back().event, scheduler::EventKind::kGrant);
}

// No time at all, so that no machine is too slow for what is said here.
TEST_F(DaemonTest, EndsByItselfWhenIdleAndNobodyHasAskedForAnything) {
  options_.idle_exit_s = 0;
  Up();
  ScriptedClient launcher = Launcher();
  Register(launcher);
  for (int i = 0; i < 4; ++i) {
    const auto goes_on = daemon_->RunOnce(1'000'000);
    ASSERT_TRUE(goes_on.ok() && *goes_on) << "a job is registered";
  }
  launcher.HangUp();
  bool goes_on = true;
  for (int i = 0; i < 1000 && goes_on; ++i) goes_on = *daemon_->RunOnce(-1);
  EXPECT_FALSE(goes_on);
}

// It wakes for its clients all the same: who waits sees that it lives.
TEST_F(DaemonTest, ShowsItsClientsThatItLives) {
  Up();
  ScriptedClient launcher = Launcher();
  ScriptedClient::Received welcome;
  ScriptedClient client = Open(Register(launcher).path, &welcome);
  ASSERT_EQ(welcome.fds.size(), 4u);
  void* const at =
      ::mmap(nullptr, sizeof(protocol::DaemonPage), PROT_READ, MAP_SHARED, welcome.fds[2].get(), 0);
  ASSERT_NE(at, MAP_FAILED);
  const auto& page = *static_cast<const protocol::DaemonPage*>(at);
  EXPECT_TRUE(Until([&] { return page.beats.load() >= 2; }));
  ::munmap(at, sizeof(protocol::DaemonPage));
}

// What it cannot start is tried again and again, each time later, and nobody waits for it.
TEST_F(DaemonTest, ServesWhileItHasNoKeeperAndSaysSo) {
  options_.keeper = dir_ + "/none";
  Up();
  EXPECT_EQ(Status().at("keeper").at("pid"), nullptr);
  ScriptedClient launcher = Launcher();
  ScriptedClient client = Open(Register(launcher).path);
  EXPECT_TRUE(Until([&] { return Status().at("keeper").at("missing_ms") >= 100; }));
  EXPECT_EQ(Status().at("keeper").at("losses"), 0) << "none was there";
  EXPECT_EQ(Status().at("jobs").size(), 1u);
}

}  // namespace
}  // namespace sluice::noded
