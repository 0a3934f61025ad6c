// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// Another user made the folder first and poses as the daemon: every program that speaks with one
// says so and sends nothing. Whoever may be spoken with still is.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "intercept/session/job_report.h"
#include "noderuntime/cli/daemon_client.h"
#include "noderuntime/gateway/node.h"
#include "noderuntime/page/daemon_source.h"
#include "tests/support/grants_bed.h"
#include "tests/support/other_user.h"

namespace sluice::testing {
namespace {

constexpr char kOthersFolder[] =
    "the socket's folder belongs to another user; allowed: one of this user's or of root's";
constexpr char kOthersListener[] =
    "another user than the owner of the socket's folder listens there; allowed: a daemon of that "
    "owner";

struct Said {
  int code = -1;
  std::string text;  // both streams
};

class Impostor : public ::testing::Test {
 protected:
  void SetUp() override {
    SLUICE_NEEDS_OTHER_USERS();
    ASSERT_EQ(::chmod(folder_.path().c_str(), 0711), 0);
    MakeFolderOf(kImpostor, run());
    daemon_ = ListenAs(kImpostor, run() + "/noded.sock");
    std::filesystem::create_directories(run() + "/jobs/1");
    std::filesystem::permissions(run() + "/jobs/1", std::filesystem::perms(0755));
    ASSERT_EQ(::chown((run() + "/jobs/1").c_str(), kImpostor, kImpostor), 0);
    job_ = ListenAs(kImpostor, run() + "/jobs/1/sluice.sock");
  }
  std::string run() const { return folder_ / "run"; }

  /// Of the victim's program, with nothing of it left when this returns.
  static Said RunAs(uid_t user, std::vector<std::string> arguments,
                    const std::vector<std::pair<std::string, std::string>>& variables = {},
                    const std::string& gpu_folder = "") {
    const std::string text = AsUser(user, [&] {
      std::optional<Result<cli::SimulatedGpu>> gpu;
      cli::SpawnOptions options;
      options.argv = std::move(arguments);
      options.environment = cli::Environment::Current();
      for (const char* name : {"LD_PRELOAD", "SLUICE_SOCKET", "XDG_RUNTIME_DIR"}) {
        options.environment.Unset(name);
      }
      if (!gpu_folder.empty()) {
        std::ofstream(gpu_folder + ".machine") << "";
        gpu.emplace(cli::SimulatedGpu::Up(cli::Layout::At(Program("BIN")), gpu_folder, 64 * kMiB,
                                          gpu_folder + ".machine", 1));
        if (!gpu->ok()) return "1 " + gpu->status().message();
        options.environment = (*gpu)->Select(options.environment);
      }
      for (const auto& [name, value] : variables) options.environment.Set(name, value);
      const Result<cli::CommandOutput> ran = cli::RunCommand(std::move(options));
      if (!ran.ok()) return "1 " + ran.status().message();
      return std::to_string(ran->status.code) + " " + ran->out + ran->err;
    });
    return {std::stoi(text), text.substr(text.find(' ') + 1)};
  }
  static std::string Sluice() { return Program("BIN") + "/sluice"; }

  /// The victim's `sluice` refuses in these words, with a code that is not 0.
  void ExpectRefused(std::vector<std::string> arguments, const char* why) {
    arguments.insert(arguments.begin(), Sluice());
    const std::string command = arguments[1];
    arguments.insert(arguments.begin() + 2, {"--runtime-dir", run()});
    const Said said = RunAs(kVictim, std::move(arguments));
    EXPECT_NE(said.code, 0) << command;
    EXPECT_NE(said.text.find(why), std::string::npos) << command << ": " << said.text;
    EXPECT_NE(said.text.find(run()), std::string::npos) << command << ": " << said.text;
  }
  void ExpectAllRefuse(const char* why) {
    ExpectRefused({"run", "--", "/bin/true"}, why);
    ExpectRefused({"status"}, why);
    ExpectRefused({"limit", "1", "5MiB"}, why);
    ExpectRefused({"policy", "flow"}, why);
    ExpectRefused({"budget", "5MiB"}, why);
    ExpectRefused({"drain", "on"}, why);
    ExpectRefused({"explain", "1"}, why);
    ExpectRefused({"top", "--once"}, why);
  }
  void ExpectNothingSent(int connections) {
    for (const UniqueFd* listener : {&daemon_, &job_}) {
      const Heard heard = WhatCame(*listener);
      EXPECT_EQ(heard.bytes, 0u);
      if (connections == 0) {
        EXPECT_EQ(heard.connections, 0);
      }
    }
  }

  TempFolder folder_;
  UniqueFd daemon_;
  UniqueFd job_;
};

TEST_F(Impostor, IsRefusedByEachCommand) {
  ExpectAllRefuse(kOthersFolder);
  ExpectNothingSent(0);
  const Said found = RunAs(kVictim, {Sluice(), "doctor"}, {{"SLUICE_RUNTIME_DIR", run()}});
  EXPECT_NE(found.text.find("runtime directory " + run()), std::string::npos) << found.text;
  ExpectNothingSent(0);
}

/// The folder is the victim's own, and still somebody else listens.
TEST_F(Impostor, IsRefusedByEachCommandInAFolderOfOnesOwn) {
  ASSERT_EQ(::chown(run().c_str(), kVictim, kVictim), 0);
  ExpectAllRefuse(kOthersListener);
  ASSERT_EQ(::chmod(run().c_str(), 0700), 0);
  const Said found = RunAs(kVictim, {Sluice(), "doctor"}, {{"SLUICE_RUNTIME_DIR", run()}});
  EXPECT_NE(found.text.find(kOthersListener), std::string::npos) << found.text;
  ExpectNothingSent(1);
}

TEST_F(Impostor, IsRefusedBehindALink) {
  std::filesystem::rename(run(), folder_ / "there");
  std::filesystem::create_directory_symlink("there", run());
  ASSERT_EQ(::chown((folder_ / "there").c_str(), kVictim, kVictim), 0);
  ExpectAllRefuse("the socket's folder is a link or no folder; allowed: a folder");
  ExpectNothingSent(0);
}

/// With folders for GPUs in it, it poses as a node's.
TEST_F(Impostor, IsRefusedInTheFolderOfANode) {
  std::filesystem::remove(run() + "/noded.sock");
  MakeFolderOf(kImpostor, run() + "/0");
  daemon_ = ListenAs(kImpostor, run() + "/0/noded.sock");
  ExpectRefused({"status"}, kOthersFolder);
  ExpectRefused({"limit", "1", "5MiB"}, kOthersFolder);
  ExpectNothingSent(0);
}

TEST_F(Impostor, IsRefusedByTheLibrary) {
  MakeFolderOf(kVictim, folder_ / "gpu");
  const auto work = [&] {
    return RunAs(
        kVictim, {Program("WORKLOAD"), "--iterations", "1"},
        {{"LD_PRELOAD", Program("LIBRARY")}, {"SLUICE_SOCKET", run() + "/jobs/1/sluice.sock"}},
        folder_ / "gpu/0");
  };
  Said said = work();
  EXPECT_NE(said.code, 0);
  EXPECT_NE(said.text.find(std::string("no GPU memory for this process: ") + kOthersFolder + " (" +
                           run() + "/jobs/1/sluice.sock)"),
            std::string::npos)
      << said.text;
  ExpectNothingSent(0);
  ASSERT_EQ(::chown((run() + "/jobs/1").c_str(), kVictim, kVictim), 0);
  said = work();
  EXPECT_NE(said.code, 0);
  EXPECT_NE(said.text.find(std::string("no GPU memory for this process: ") + kOthersListener),
            std::string::npos)
      << said.text;
  ExpectNothingSent(1);
}

TEST_F(Impostor, IsRefusedByTheGatewayAndThePage) {
  for (const char* why : {kOthersFolder, kOthersListener}) {
    const std::string said = AsUser(kVictim, [&] {
      const gateway::Node node(run());
      const std::vector<gateway::GpuView> gpus = node.Look();
      std::string text = gpus.size() == 1 && !gpus[0].up ? "" : "it is up; ";
      text += node.Connect(0).status().message() + "; ";
      const page::DaemonSource source(run());
      text += source.Status(0).status().message() + "; ";
      return text + source.Connect(0).status().message();
    });
    EXPECT_FALSE(said.starts_with("it is up")) << said;
    size_t times = 0;
    for (size_t at = said.find(why); at != std::string::npos; at = said.find(why, at + 1)) ++times;
    EXPECT_EQ(times, 3u) << said;
    ASSERT_EQ(::chown(run().c_str(), kVictim, kVictim), 0);
  }
  ExpectNothingSent(1);
}

TEST_F(Impostor, KeepsAGatewayFromStarting) {
  const Said said = RunAs(kVictim, {Program("BIN") + "/sluice-gateway", "--runtime-dir", run(),
                                    "--metrics", "127.0.0.1:0"});
  EXPECT_NE(said.code, 0);
  EXPECT_NE(said.text.find("runtime directory " + run() + ": " + kOthersFolder), std::string::npos)
      << said.text;
  ExpectNothingSent(0);
}

/// What a browser is sent to stands in a file of the folder.
TEST_F(Impostor, SendsNoBrowserAnywhere) {
  const std::string page = run() + "/page.json";
  std::ofstream(page) << R"({"address": "127.0.0.1:9", "token": "x"})";
  std::ofstream(run() + "/page.lock") << "";
  for (const std::string& file : {page, run() + "/page.lock"})
    ASSERT_EQ(::chmod(file.c_str(), 0644), 0);
  const UniqueFd lock(::open((run() + "/page.lock").c_str(), O_RDONLY | O_CLOEXEC));
  ASSERT_EQ(::flock(lock.get(), LOCK_EX), 0);
  const Said said = RunAs(kVictim, {Sluice(), "page", "--runtime-dir", run()});
  EXPECT_NE(said.code, 0);
  EXPECT_EQ(said.text.find("127.0.0.1:9"), std::string::npos) << said.text;
  EXPECT_NE(said.text.find(kOthersFolder), std::string::npos) << said.text;
  EXPECT_EQ(Said(RunAs(0, {Sluice(), "page", "--runtime-dir", run()})).code, 0)
      << "root may look at it";
}

/// In the folder that root's own daemon would be in, root is as careful as all are.
TEST_F(Impostor, IsRefusedWhereRootsOwnDaemonWouldBe) {
  EXPECT_EQ(cli::ReachOf("/tmp/sluice-0/noded.sock"), peer::Reach::kOwn);
  EXPECT_EQ(cli::ReachOf("/tmp/sluice-0/1/noded.sock"), peer::Reach::kOwn);
  EXPECT_EQ(cli::ReachOf("/tmp/sluice-00/noded.sock"), peer::Reach::kAnybody);
  EXPECT_EQ(cli::ReachOf(run() + "/noded.sock"), peer::Reach::kAnybody);
}

/// Root's daemon: its grant is another user's, also of one that has no number here.
TEST_F(Grants, RootsGrantIsAnybodys) {
  SLUICE_NEEDS_OTHER_USERS();
  Up();
  const GrantRecord grant = Make(8 * kMiB);
  AwaitSocket(grant);
  // As the folders of a node are.
  ASSERT_EQ(::chmod(root_.c_str(), 0711), 0);
  const std::string mount = root_ + "/mount";
  MakeFolderOf(0, mount);
  const auto hello = [&](const std::string& folder) {
    const std::string path = folder + "/sluice.sock";
    protocol::Told told = {};
    JobReport report;
    return std::string(report.Ask(path.c_str(), &told) ? "told" : "nothing");
  };
  EXPECT_EQ(AsUser(kVictim, [&] { return hello(FolderOf(grant)); }), "told");
  Container container{.source = FolderOf(grant), .target = mount};
  EXPECT_EQ(sluice::testing::InContainer(container, [&] { return hello(mount); }), "told");
  container.user = 1000;
  EXPECT_EQ(sluice::testing::InContainer(container, [&] { return hello(mount); }), "told");
  EXPECT_EQ(sluice::testing::InContainer(container, [&] { return hello(FolderOf(grant)); }),
            "nothing")
      << "by its path on the node it is nobody's";
}

/// A user's daemon is that user's, and root may look at it.
TEST_F(Impostor, IsRefusedWhereTheRightDaemonIsNot) {
  daemon_.reset();
  std::filesystem::remove(run() + "/noded.sock");
  ASSERT_EQ(::chown(run().c_str(), kVictim, kVictim), 0);
  const UniqueFd right = ListenAs(kVictim, run() + "/noded.sock");
  EXPECT_TRUE(cli::DaemonClient::Connect(run() + "/noded.sock").ok());
  EXPECT_EQ(
      AsUser(kVictim,
             [&] { return cli::DaemonClient::Connect(run() + "/noded.sock").status().message(); }),
      "");
  EXPECT_NE(
      AsUser(kImpostor,
             [&] { return cli::DaemonClient::Connect(run() + "/noded.sock").status().message(); }),
      "");
}

}  // namespace
}  // namespace sluice::testing
