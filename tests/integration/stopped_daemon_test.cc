// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// A daemon that is there and does nothing: stopped by a signal here, as by a debugger or a frozen
// control group. Who waits for it says so, and loses nothing.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>

#include "noderuntime/cli/daemon_client.h"
#include "tests/support/restart_bed.h"

namespace sluice::testing {
namespace {

constexpr char kSilent[] = "the daemon has given no sign of life for ";
constexpr char kBack[] = "the daemon is back";

size_t CountLines(const cli::JobProcess& job, const std::string& part) {
  return static_cast<size_t>(std::count_if(
      job.err().begin(), job.err().end(),
      [&part](const std::string& line) { return line.find(part) != std::string::npos; }));
}

/// A job with gates, that runs until its input ends.
class StoppedDaemon : public ::testing::Test {
 protected:
  StoppedDaemon() {
    jobs_.Add(
        bed_.Start({.label = "job",
                    .command = {Program("WORKLOAD"), "--iterations", "20", "--blocks", "8",
                                "--block-bytes", "256KiB", "--sync", "iteration", "--until-eof"},
                    .run_flags = {"--limit", "8MiB", "--request", "2MiB"},
                    // A daemon that lives beats each second.
                    .environment = {{"SLUICE_DEBUG_SILENCE_MS", "4000"}},
                    .input = input_.read_end.get()}));
    EXPECT_TRUE(bed_.log().Await(
        [](const std::vector<scheduler::Record>& records) {
          return std::any_of(records.begin(), records.end(), [](const scheduler::Record& record) {
            return record.event == scheduler::EventKind::kGate && record.profiled;
          });
        },
        kRestartWaitMs));
    AwaitKeeper(bed_);
  }
  /// Stops the daemon, has `then` done once the job says so, and the job end when it has said that
  /// the daemon is back.
  const cli::JobProcess& StopAnd(const std::function<void()>& then) {
    EXPECT_EQ(::kill(bed_.daemon_pid(), SIGSTOP), 0);
    bool done = false;
    Finish(jobs_, kRestartWaitMs, [&](cli::JobGroup& running) {
      const cli::JobProcess& job = running.jobs().front();
      if (!done && CountLines(job, kSilent) > CountLines(job, kBack)) {
        done = true;
        then();
      }
      if (done && CountLines(job, kBack) == CountLines(job, kSilent)) input_.write_end.reset();
    });
    EXPECT_TRUE(done);
    return jobs_.jobs().front();
  }
  void ExpectAllWell(const cli::JobProcess& job) {
    EXPECT_TRUE(job.status().ok()) << Describe(job);
    EXPECT_EQ(Value(job.out(), "mismatches"), "0");
    EXPECT_EQ(CountLines(job, kSilent), CountLines(job, kBack)) << Describe(job);
    EXPECT_EQ(CountLines(job, "lost"), 0u) << Describe(job);
    const nlohmann::json last = AwaitStatus(bed_, NoJobs);
    EXPECT_EQ(last.at("free_bytes"), last.at("pool_bytes"));
    bed_.StopDaemon();
    for (const auto& log : bed_.logs()) EXPECT_TRUE(log->Audit().ok()) << Violations(log->Audit());
  }

  TestBed bed_{SmallBed()};
  InputPipe input_ = MakeInputPipe();
  cli::JobGroup jobs_;
};

TEST_F(StoppedDaemon, WhoWaitsSaysSoAndGoesOnWithIt) {
  ExpectAllWell(StopAnd([this] {
    // Whoever asks it is told what is to be seen of it.
    Result<cli::DaemonClient> client = cli::DaemonClient::Connect(
        cli::DaemonSocket(bed_.runtime_dir()), std::chrono::milliseconds(200));
    ASSERT_TRUE(client.ok()) << client.status().message();
    const std::string pid = std::to_string(bed_.daemon_pid());
    EXPECT_EQ(client->FetchStatus().status().message(),
              "sluice-noded: no answer within 0.2 s: process " + pid +
                  " is stopped (SIGSTOP or a debugger); 'kill -CONT " + pid +
                  "' lets it go on, and the jobs that wait for it with it");
    const cli::CommandOutput doctor = bed_.Sluice({"doctor"});
    EXPECT_NE(doctor.out.find("fail  sluice-noded: no answer within 10 s: process " + pid +
                              " is stopped"),
              std::string::npos)
        << doctor.out;
    EXPECT_EQ(::kill(bed_.daemon_pid(), SIGCONT), 0);
  }));
}

TEST_F(StoppedDaemon, WhoWaitsGoesOnWithTheNextOne) {
  ExpectAllWell(StopAnd([this] { bed_.RestartDaemon(); }));
}

}  // namespace
}  // namespace sluice::testing
