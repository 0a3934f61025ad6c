// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "noderuntime/daemon/daemon.h"
#include "tests/support/fake_gpu.h"
#include "tests/unit/noderuntime/support/scripted_client.h"

namespace sluice::noded {

using protocol::FrameType;
using testing::ScriptedClient;

inline constexpr uint64_t kUnit = 4096;

/// A daemon in this process with a fake GPU, and the ends of its connections.
class DaemonTest : public ::testing::Test {
 protected:
  void SetUp() override {
    device_.facts.name = "fake";
    device_.facts.uuid = {9, 8, 7};
    device_.facts.total_bytes = 64 * kUnit;
    device_.facts.granularity = kUnit;
    char dir[] = "/tmp/sluice-noded-test-XXXXXX";
    ASSERT_NE(::mkdtemp(dir), nullptr);
    dir_ = dir;
    options_.runtime_dir = dir_ + "/run";
    options_.unit_bytes = kUnit;
    options_.handle_bytes = 4 * kUnit;
    options_.pool_bytes = 32 * kUnit;
    options_.event_log = dir_ + "/events";
    options_.oracle = dir_ + "/oracle";
    options_.poison = true;
  }
  void TearDown() override {
    daemon_.reset();
    std::filesystem::remove_all(dir_);
  }
  void Up() {
    Result<std::unique_ptr<Daemon>> daemon = Daemon::Create(options_, &device_, {});
    ASSERT_TRUE(daemon.ok()) << daemon.status().message();
    daemon_ = std::move(*daemon);
  }

  /// Turns the loop until `done`; the bound only ends a failing test.
  ::testing::AssertionResult Until(const std::function<bool()>& done) {
    for (int i = 0; i < 5000; ++i) {
      if (done()) return ::testing::AssertionSuccess();
      const Result<bool> goes_on = daemon_->RunOnce(1'000'000);
      if (!goes_on.ok()) return ::testing::AssertionFailure() << goes_on.status().message();
      if (!*goes_on && !done()) return ::testing::AssertionFailure() << "the daemon ended";
    }
    return ::testing::AssertionFailure() << "not in time";
  }
  std::optional<ScriptedClient::Received> Await(ScriptedClient& client) {
    std::optional<ScriptedClient::Received> frame;
    EXPECT_TRUE(Until([&] {
      frame = client.Receive();
      return frame.has_value() || client.closed();
    }));
    return frame;
  }

  ScriptedClient Launcher() {
    return ScriptedClient::Connect(options_.runtime_dir + "/noded.sock");
  }
  protocol::Registered Register(ScriptedClient& launcher, uint64_t limit = 0, uint64_t request = 0,
                                uint32_t gpu = 0, uint32_t flags = 0) {
    protocol::Register wanted = {};
    wanted.limit_bytes = limit;
    wanted.request_bytes = request;
    wanted.gpu = gpu;
    wanted.flags = flags;
    std::strcpy(wanted.name, "a job");
    launcher.Send(wanted, FrameType::kRegister, 5);
    const auto frame = Await(launcher);
    EXPECT_TRUE(frame.has_value() && frame->type() == FrameType::kRegistered);
    return frame->As<protocol::Registered>();
  }
  /// A connection that has shaken hands; `welcome` keeps its descriptors.
  ScriptedClient Open(const std::string& path, ScriptedClient::Received* welcome = nullptr) {
    ScriptedClient client = ScriptedClient::Connect(path);
    client.Hello(device_.info().uuid);
    auto frame = Await(client);
    EXPECT_TRUE(frame.has_value() && frame->type() == FrameType::kWelcome);
    if (welcome != nullptr) *welcome = std::move(*frame);
    frame = Await(client);
    EXPECT_TRUE(frame.has_value() && frame->type() == FrameType::kHandles);
    EXPECT_EQ(frame->fds.size(), 8u);
    client.Ready();
    return client;
  }
  /// As a library of that protocol does.
  ScriptedClient OpenAs(const std::string& path, uint16_t minor, bool ready = true) {
    ScriptedClient client = ScriptedClient::Connect(path);
    protocol::Hello hello = ScriptedClient::MakeHello(device_.info().uuid);
    hello.minor = minor;
    client.Send(hello, FrameType::kHello);
    for (const FrameType type : {FrameType::kWelcome, FrameType::kHandles}) {
      const auto frame = Await(client);
      EXPECT_TRUE(frame.has_value() && frame->type() == type);
    }
    if (ready) client.Ready();
    return client;
  }
  protocol::LimitSet SetLimit(uint32_t job, uint64_t bytes) {
    ScriptedClient asker = Launcher();
    protocol::SetLimit wanted = {};
    wanted.job = job;
    wanted.bytes = bytes;
    asker.Send(wanted, FrameType::kSetLimit, 3);
    const auto frame = Await(asker);
    EXPECT_TRUE(frame.has_value() && frame->type() == FrameType::kLimitSet);
    return frame->As<protocol::LimitSet>();
  }
  nlohmann::json Status() {
    ScriptedClient asker = Launcher();
    asker.Send(protocol::Status{}, FrameType::kStatus);
    const auto frame = Await(asker);
    EXPECT_TRUE(frame.has_value() && frame->fds.size() == 1);
    std::string text(frame->As<protocol::StatusReply>().json_bytes, '\0');
    EXPECT_EQ(::pread(frame->fds[0].get(), text.data(), text.size(), 0),
              static_cast<ssize_t>(text.size()));
    return nlohmann::json::parse(text);
  }

  std::string dir_;
  config::Options options_;
  testing::FakeGpu device_;
  std::unique_ptr<Daemon> daemon_;
};

/// What a process has outside the pool, and no context: its next session begins with it.
class AccountTest : public DaemonTest {
 protected:
  void SetUp() override {
    DaemonTest::SetUp();
    Up();
    launcher_.emplace(Launcher());
    path_ = Register(*launcher_).path;
    device_.user = ::getpid();
    ScriptedClient client = OpenNew();
    client.Ready();
    protocol::Charge charge{};
    charge.family = kPhysical;
    charge.bytes = 2 * kUnit;
    client.Send(charge, FrameType::kCharge, 1);
    const auto answer = Await(client);
    ASSERT_TRUE(answer.has_value() && answer->type() == FrameType::kCharged);
    client.Send(protocol::Bye{}, FrameType::kBye);
    ASSERT_TRUE(Until([&] { return daemon_->flow().Rests(1); }));
  }
  /// A library of today, whose handshake lacks its last word.
  ScriptedClient OpenNew() { return OpenAs(path_, protocol::kMinor, /*ready=*/false); }
  void GiveBack(const ScriptedClient& client, uint64_t bytes) {
    protocol::Uncharge uncharge{};
    uncharge.family = kPhysical;
    uncharge.bytes = bytes;
    client.Send(uncharge, FrameType::kUncharge);
  }
  uint64_t Charged() const { return daemon_->flow().outside().charged(1); }

  static constexpr uint32_t kPhysical = static_cast<uint32_t>(protocol::Family::kPhysical);
  std::optional<ScriptedClient> launcher_;
  std::string path_;
};

}  // namespace sluice::noded
