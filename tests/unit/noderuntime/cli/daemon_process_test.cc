// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/cli/daemon_process.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "noderuntime/cli/work_dir.h"

namespace sluice::cli {
namespace {

/// A folder with a script in the place of the daemon.
class DaemonProcessTest : public testing::Test {
 protected:
  void SetUp() override {
    auto work = WorkDir::Create("");
    ASSERT_TRUE(work.ok());
    work_ = std::make_unique<WorkDir>(std::move(*work));
    std::filesystem::create_directory(work_->File("bin"));
    layout_ = Layout::At(work_->File("bin"));
  }
  void Script(const std::string& body) {
    const std::string path = layout_.Program("sluice-noded");
    std::ofstream(path) << "#!/bin/sh\n" << body;
    ASSERT_EQ(::chmod(path.c_str(), 0700), 0);
  }
  DaemonOptions Options() {
    DaemonOptions options;
    options.program = layout_.Program("sluice-noded");
    options.runtime_dir = work_->path();
    options.log_file = work_->File("noded.log");
    options.flags = {"--policy", "flow"};
    return options;
  }

  std::unique_ptr<WorkDir> work_;
  Layout layout_;
};

// $4 is the value of --ready-fd.
TEST_F(DaemonProcessTest, IsReadyWithItsByteAndEndsWhenAsked) {
  Script(
      "trap 'kill $sleeper; exit 0' TERM; echo \"$@\"\n"
      "sleep 1000 & sleeper=$!\neval \"echo x >&$4\"; wait\n");
  auto daemon = DaemonProcess::Start(Options(), Environment::Current());
  ASSERT_TRUE(daemon.ok()) << daemon.status().message();
  EXPECT_FALSE(daemon->Ended());
  const Status stopped = daemon->Stop();
  EXPECT_TRUE(stopped.ok()) << stopped.message();
  EXPECT_TRUE(LastLine(Options().log_file).ends_with("--policy flow"))
      << LastLine(Options().log_file);
}

TEST_F(DaemonProcessTest, AFailedStartCarriesTheLastLineOfTheLog) {
  Script("echo first; echo '--pool: too large' >&2; echo; exit 2\n");
  const auto daemon = DaemonProcess::Start(Options(), Environment::Current());
  ASSERT_FALSE(daemon.ok());
  EXPECT_EQ(daemon.status().message(), "sluice-noded did not start: --pool: too large");
}

TEST_F(DaemonProcessTest, ABadEndIsAnError) {
  Script(
      "trap 'kill $sleeper; exit 5' TERM\n"
      "sleep 1000 & sleeper=$!\neval \"echo x >&$4\"; wait\n");
  auto daemon = DaemonProcess::Start(Options(), Environment::Current());
  ASSERT_TRUE(daemon.ok()) << daemon.status().message();
  EXPECT_EQ(daemon->Stop().message(), "sluice-noded ended badly: exit code 5");
}

TEST_F(DaemonProcessTest, AMissingProgramIsNamed) {
  const auto daemon = DaemonProcess::Start(Options(), Environment::Current());
  ASSERT_FALSE(daemon.ok());
  EXPECT_NE(daemon.status().message().find("sluice-noded: No such file"), std::string::npos);
}

TEST_F(DaemonProcessTest, AnEmbeddedDaemonThatFailsIsReported) {
  Script("echo 'no GPU' >&2; exit 1\n");
  const std::string dir = work_->File("runtime");
  const auto client = ConnectOrStart(layout_, dir, {}, Environment::Current());
  ASSERT_FALSE(client.ok());
  EXPECT_EQ(client.status().message(), "sluice-noded did not start: no GPU");
}

TEST(DaemonEnvironment, TheDaemonIsNoJobItself) {
  const Layout layout = Layout::At("/s/bin");
  Environment job;
  job.Set("SLUICE_SOCKET", "/outer");
  job.Set("LD_PRELOAD", "/s/lib/libsluice.so:/other.so");
  job.Set("SLUICE_SIMGPU", "/gpu");
  const Environment made = DaemonEnvironment(job, layout);
  EXPECT_EQ(made.Get("SLUICE_SOCKET"), std::nullopt);
  EXPECT_EQ(made.Get("LD_PRELOAD"), "/other.so");
  EXPECT_EQ(made.Get("SLUICE_SIMGPU"), "/gpu");
}

}  // namespace
}  // namespace sluice::cli
