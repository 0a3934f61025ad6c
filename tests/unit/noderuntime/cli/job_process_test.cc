// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/cli/job_process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

namespace sluice::cli {
namespace {

constexpr int kTimeoutMs = 30'000;

Result<JobProcess> Shell(const std::string& script) {
  SpawnOptions options;
  options.argv = {"/bin/sh", "-c", script};
  options.environment = Environment::Current();
  return JobProcess::Start("shell", std::move(options));
}

TEST(LineBuffer, CutsAcrossPieces) {
  LineBuffer buffer;
  std::vector<std::string> lines;
  buffer.Feed("one\ntw", lines);
  buffer.Feed("o\n\nthr", lines);
  EXPECT_EQ(lines, (std::vector<std::string>{"one", "two", ""}));
  buffer.Finish(lines);
  buffer.Finish(lines);
  EXPECT_EQ(lines, (std::vector<std::string>{"one", "two", "", "thr"}));
}

TEST(JobGroup, CollectsBothStreamsAndTheExitCode) {
  JobGroup group;
  auto job = Shell("echo out; echo err >&2; printf unfinished; exit 3");
  ASSERT_TRUE(job.ok());
  group.Add(std::move(*job));
  ASSERT_TRUE(group.Run(nullptr, -1, kTimeoutMs).ok());
  const JobProcess& ended = group.jobs().front();
  EXPECT_EQ(ended.out(), (std::vector<std::string>{"out", "unfinished"}));
  EXPECT_EQ(ended.err(), (std::vector<std::string>{"err"}));
  EXPECT_EQ(ended.status().code, 3);
  EXPECT_EQ(ended.status().Describe(), "exit code 3");
}

TEST(JobGroup, EndsWithTheProcessEvenWhenAChildKeepsItsOutputOpen) {
  JobGroup group;
  auto job = Shell("sleep 1000 & echo $!; exit 0");
  ASSERT_TRUE(job.ok());
  group.Add(std::move(*job));
  ASSERT_TRUE(group.Run(nullptr, -1, kTimeoutMs).ok());
  ASSERT_EQ(group.jobs().front().out().size(), 1u);
  const pid_t sleeper = std::stoi(group.jobs().front().out().front());
  EXPECT_EQ(::kill(sleeper, SIGKILL), 0) << "it should still be there";
}

TEST(JobGroup, KillsEveryJobWhenCancelled) {
  int cancel[2];
  ASSERT_EQ(::pipe2(cancel, O_CLOEXEC), 0);
  JobGroup group;
  for (int i = 0; i < 2; ++i) {
    auto job = Shell("echo ready; exec sleep 1000");
    ASSERT_TRUE(job.ok());
    group.Add(std::move(*job));
  }
  const auto cancel_when_ready = [&](JobGroup& jobs) {
    for (const JobProcess& job : jobs.jobs()) {
      if (job.out().empty()) return;
    }
    ASSERT_EQ(::write(cancel[1], "x", 1), 1);
  };
  const Status status = group.Run(cancel_when_ready, cancel[0], kTimeoutMs);
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  for (const JobProcess& job : group.jobs()) {
    ASSERT_TRUE(job.ended());
    EXPECT_EQ(job.status().signal, SIGKILL);
    EXPECT_EQ(job.status().Describe(), "killed by signal 9 (Killed)");
  }
  ::close(cancel[0]);
  ::close(cancel[1]);
}

TEST(JobGroup, KillsAJobThatTakesTooLong) {
  JobGroup group;
  auto job = Shell("exec sleep 1000");
  ASSERT_TRUE(job.ok());
  group.Add(std::move(*job));
  EXPECT_EQ(group.Run(nullptr, -1, 10).code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(group.jobs().front().status().signal, SIGKILL);
}

TEST(JobProcess, NamesAProgramThatCannotBeStarted) {
  SpawnOptions options;
  options.argv = {"/no/such/program"};
  const auto job = JobProcess::Start("job 1", std::move(options));
  ASSERT_FALSE(job.ok());
  EXPECT_EQ(job.status().message(), "job 1: /no/such/program: No such file or directory");
}

TEST(RunCommand, CollectsOutput) {
  SpawnOptions options;
  options.argv = {"/bin/sh", "-c", "echo $GREETING; echo trouble >&2; exit 1"};
  options.environment.Set("GREETING", "hello");
  const auto result = RunCommand(std::move(options));
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->out, "hello\n");
  EXPECT_EQ(result->err, "trouble\n");
  EXPECT_EQ(result->status.code, 1);
}

}  // namespace
}  // namespace sluice::cli
