// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// sluice run --observe: what a live job did in an iteration, as a trace that simulations take.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/support/test_bed.h"

namespace sluice::testing {
namespace {

using nlohmann::json;
using scheduler::EventKind;
using scheduler::Record;

class Observe : public ::testing::Test {
 protected:
  explicit Observe(const BedOptions& options = {}) : bed_(options) {}

  std::string TraceFile() const { return bed_.work().File("job.trace"); }
  JobSpec Job(std::vector<std::string> command, int input = -1) const {
    return {.label = "job",
            .command = std::move(command),
            .run_flags = {"--observe", "--trace", TraceFile()},
            .input = input};
  }
  /// A job that repeats an iteration until its input ends.
  JobSpec Endless(int input) const {
    return Job({Program("WORKLOAD"), "--blocks", "24", "--until-eof", "--progress"}, input);
  }
  /// Iterations that began behind a gate: the node has a profile.
  size_t Gated() {
    const std::vector<Record>& records = bed_.log().Read();
    return static_cast<size_t>(std::count_if(
        records.begin(), records.end(),
        [](const Record& record) { return record.event == EventKind::kGate && record.profiled; }));
  }
  static std::string Line(const std::vector<std::string>& lines, const std::string& text) {
    for (const std::string& line : lines) {
      if (line.find(text) != std::string::npos) return line;
    }
    return "";
  }
  /// Nothing else of it: the rest is said in one line.
  void ExpectNothingRecorded(const cli::JobProcess& job, const std::string& why) const {
    EXPECT_NE(Line(job.err(), "nothing can be said of sharing: " + why), "") << Describe(job);
    EXPECT_FALSE(std::filesystem::exists(TraceFile()));
  }

  TestBed bed_;
};

TEST_F(Observe, RecordsWhatTheNodeMeasuredAndSimulationsTakeIt) {
  InputPipe input = MakeInputPipe();
  cli::JobGroup jobs;
  jobs.Add(bed_.Start(Endless(input.read_end.get())));
  json measured;
  Finish(jobs, 60'000, [&](cli::JobGroup&) {
    if (!input.write_end.valid() || Gated() < 12) return;
    measured = bed_.Status().at("jobs").at(0).at("profile");
    if (!measured.is_null()) input.write_end.reset();
  });
  const cli::JobProcess& job = jobs.jobs().front();
  ASSERT_TRUE(job.status().ok()) << Describe(job);
  EXPECT_EQ(Value(job.out(), "mismatches"), "0");
  ASSERT_FALSE(measured.is_null());

  const cli::CommandOutput profile =
      bed_.Sluice({"profile", TraceFile(), "--batch", "1", "--json"});
  ASSERT_EQ(profile.status.code, 0) << profile.err;
  const json read = json::parse(profile.out);
  EXPECT_EQ(read.at("launches"), measured.at("period"));
  EXPECT_EQ(read.at("iteration_ns"), measured.at("iteration_ns"));
  EXPECT_EQ(read.at("peak_bytes"), measured.at("peak_bytes"));
  EXPECT_EQ(read.at("base_bytes"), measured.at("base_bytes"));

  const std::string one = TraceFile() + ":1";
  const cli::CommandOutput two = bed_.Sluice(
      {"simulate", one, one, "--pool", "12MiB", "--unit", "256KiB", "--policy", "flow", "--json"});
  ASSERT_EQ(two.status.code, 0) << two.err;
  EXPECT_EQ(json::parse(two.out).at("jobs").size(), 2u);
  const cli::CommandOutput other = bed_.Sluice({"simulate", TraceFile() + ":64"});
  EXPECT_EQ(other.status.code, 2);
  EXPECT_NE(other.err.find("batch: 64 is not the one that was measured"), std::string::npos)
      << other.err;
  EXPECT_EQ(bed_.Sluice({"max-batch", TraceFile()}).status.code, 2);

  // The base is a block of 256 KiB and a small one, and 24 more of 256 KiB come and go. In units of
  // 256 KiB that is a base of 2 and a peak of 26.
  EXPECT_NE(Line(job.err(), "; 6.0 MiB at most come and go"), "") << Describe(job);
  EXPECT_NE(Line(job.err(),
                 "7.0 MiB to take turns, 13.0 MiB to run side by side; the pool has "
                 "48.0 MiB"),
            "")
      << Describe(job);
  const std::string gain = Line(job.err(), "two of these in this pool would finish in ");
  EXPECT_NE(gain.find("(simulated: policy flow, time slices, "), std::string::npos)
      << Describe(job);
  ExpectAllGivenBack(bed_);
}

TEST_F(Observe, AnInterruptedJobIsToldOfTooAndEndsAsItDid) {
  InputPipe input = MakeInputPipe();
  cli::JobGroup jobs;
  jobs.Add(bed_.Start(Endless(input.read_end.get())));
  bool sent = false;
  Finish(jobs, 60'000, [&](cli::JobGroup& group) {
    if (sent || Gated() < 4) return;
    sent = true;
    group.jobs().front().Signal(SIGTERM);
  });
  const cli::JobProcess& job = jobs.jobs().front();
  EXPECT_EQ(job.status().code, 128 + SIGTERM) << Describe(job);
  EXPECT_EQ(job.status().signal, 0) << "the launcher itself was not ended";
  EXPECT_NE(Line(job.err(), "an iteration was recorded in " + TraceFile()), "") << Describe(job);
  const cli::CommandOutput one = bed_.Sluice({"simulate", TraceFile() + ":1", "--pool", "48MiB"});
  EXPECT_EQ(one.status.code, 0) << one.err;
  ExpectAllGivenBack(bed_);
}

TEST_F(Observe, AScriptIsItsProgramThatTrained) {
  // What comes before and after it uses the GPU as well, and repeats nothing.
  const std::string workload = Program("WORKLOAD");
  const cli::JobProcess job =
      bed_.Run(Job({Program("BASH"), "-c",
                    workload + " --one-shot && " + workload + " --iterations 200 && " + workload +
                        " --one-shot; exit 9"}));
  EXPECT_EQ(job.status().code, 9) << Describe(job);
  EXPECT_NE(Line(job.err(), "iteration: "), "") << Describe(job);
  EXPECT_TRUE(std::filesystem::exists(TraceFile()));
}

TEST_F(Observe, ATrainerIsRecordedAsItRuns) {
  const cli::JobProcess job = bed_.Run(
      Job({Program("TRAINER"), "--model", "small-a", "--seed", "1", "--iterations", "60"}));
  ASSERT_TRUE(job.status().ok()) << Describe(job);
  EXPECT_NE(Line(job.err(), "two of these in this pool would finish in "), "") << Describe(job);
  const std::string one = TraceFile() + ":1";
  const cli::CommandOutput two = bed_.Sluice({"simulate", one, one, "--pool", "48MiB"});
  EXPECT_EQ(two.status.code, 0) << two.err;
}

TEST_F(Observe, SaysWhyThereIsNothingToSay) {
  const cli::JobProcess once = bed_.Run(Job({Program("WORKLOAD"), "--one-shot"}));
  EXPECT_EQ(once.status().code, 0) << Describe(once);
  ExpectNothingRecorded(once, "no iteration was found in its ");
  const cli::JobProcess none = bed_.Run(Job({Program("BASH"), "-c", "exit 7"}));
  EXPECT_EQ(none.status().code, 7) << Describe(none);
  ExpectNothingRecorded(none, "the job has not used the GPU under Sluice");
}

TEST_F(Observe, AFileThatIsThereIsKeptAndNothingIsStarted) {
  const std::string there = bed_.work().File("there.trace");
  JobSpec spec = Job({Program("BASH"), "-c", "echo started"});
  spec.run_flags = {"--observe", "--trace", bed_.log().path()};
  const cli::JobProcess job = bed_.Run(spec);
  EXPECT_EQ(job.status().code, 2);
  EXPECT_TRUE(job.out().empty()) << Describe(job);
  EXPECT_NE(Line(job.err(), "exists already"), "") << Describe(job);
  spec.run_flags = {"--observe", "--trace", there + "/below"};
  const cli::JobProcess nowhere = bed_.Run(spec);
  EXPECT_EQ(nowhere.status().code, 2);
  EXPECT_TRUE(nowhere.out().empty()) << Describe(nowhere);
}

class ObserveWithKeeper : public Observe {
 protected:
  ObserveWithKeeper() : Observe(Kept()) {}
  static BedOptions Kept() {
    BedOptions options;
    options.keeper = true;
    return options;
  }
};

// The job goes on; what was recorded of it went with the daemon that recorded it.
TEST_F(ObserveWithKeeper, ARecordingDoesNotOutliveItsDaemon) {
  InputPipe input = MakeInputPipe();
  cli::JobGroup jobs;
  jobs.Add(bed_.Start(Endless(input.read_end.get())));
  bool restarted = false;
  Finish(jobs, 60'000, [&](cli::JobGroup&) {
    if (!input.write_end.valid() || Gated() < 4) return;
    if (restarted) return input.write_end.reset();
    bed_.RestartDaemon();
    restarted = true;
  });
  const cli::JobProcess& job = jobs.jobs().front();
  EXPECT_TRUE(job.status().ok()) << Describe(job);
  EXPECT_EQ(Value(job.out(), "mismatches"), "0");
  ExpectNothingRecorded(job, "the job was not to be observed, or its daemon was restarted since");
}

}  // namespace
}  // namespace sluice::testing
