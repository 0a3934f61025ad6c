// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "common/bytes.h"
#include "tests/support/test_bed.h"

namespace sluice::testing {
namespace {

constexpr int kMismatch = 4, kOutOfMemory = 3;
constexpr uint64_t kIterations = 20;
constexpr uint64_t kHandle = 2 * kMiB;
constexpr uint64_t kContext = 4 * kMiB;  // of the simulated GPU's default machine

/// Recorded iterations of real models as processes, small enough for a test in size and in time.
struct Replay {
  std::string trace;
  std::string iterations = std::to_string(kIterations);
  std::vector<std::string> extra = {};

  std::vector<std::string> Command() const {
    std::vector<std::string> command = {
        Program("REPLAY"), Program("TRACES") + "/" + trace + ".trace",
        "--batch",         "16",
        "--iterations",    iterations,
        "--machine",       Program("MACHINES") + "/v100-32.machine",
        "--size-scale",    "0.0078125",
        "--json"};
    command.insert(command.end(), extra.begin(), extra.end());
    return command;
  }
};

nlohmann::json ReportOf(const cli::JobProcess& job) {
  if (job.out().empty()) {
    ADD_FAILURE() << Describe(job);
    return nlohmann::json::object();
  }
  return nlohmann::json::parse(job.out().back());
}

BedOptions GpuAlone() {
  BedOptions options;
  options.gpu_memory = "128MiB";
  options.start_noded = false;
  return options;
}

cli::JobProcess RunAlone(const Replay& replay) {
  const TestBed bed(GpuAlone());
  return bed.Run({.label = replay.trace, .command = replay.Command(), .under_sluice = false});
}

/// All that a replay does, whatever runs beside it.
void ExpectSameWork(const nlohmann::json& expected, const cli::JobProcess& job) {
  EXPECT_TRUE(job.ended() && job.status().ok()) << Describe(job);
  const nlohmann::json report = ReportOf(job);
  EXPECT_EQ(report.at("mismatches"), 0);
  for (const char* key :
       {"iterations", "launches", "blocks_checked", "words_checked", "peak_live_bytes"}) {
    EXPECT_EQ(report.at(key), expected.at(key)) << key;
  }
}

TEST(ReplayTest, EveryOperatorIsOneLaunchAndEveryBlockIsChecked) {
  const cli::JobProcess job = RunAlone({"resnet50", "4"});
  ASSERT_TRUE(job.status().ok()) << Describe(job);
  const nlohmann::json report = ReportOf(job);
  EXPECT_EQ(report.at("launches"), 4 * 411);
  EXPECT_EQ(report.at("iteration_ms").size(), 4u);
  EXPECT_EQ(report.at("mismatches"), 0);
  EXPECT_GT(report.at("blocks_checked"), 4 * 411);
  EXPECT_GT(report.at("words_checked"), 500'000);
  EXPECT_GE(report.at("driver_peak_bytes"), report.at("peak_live_bytes"));
}

TEST(ReplayTest, SpoiltMemoryIsFound) {
  for (const char* pattern : {"full", "sparse"}) {
    const cli::JobProcess job =
        RunAlone({"resnet50", "3", {"--corrupt", "486", "--pattern", pattern}});
    EXPECT_EQ(job.status().code, kMismatch) << Describe(job);
    const nlohmann::json report = ReportOf(job);
    EXPECT_GE(report.at("mismatches"), 3);
    EXPECT_EQ(report.at("first_mismatch").at("block"), 486);
    EXPECT_EQ(report.at("first_mismatch").at("iteration"), 0);
  }
}

TEST(ReplayTest, TheDriverSaysHowFastItsGpuIs) {
  BedOptions options = GpuAlone();
  options.gpu_memory = "1GiB";  // the context of a V100 takes half of it
  options.machine = Program("MACHINES") + "/v100-32.machine";
  const TestBed bed(options);
  const auto planned_ms = [&](const std::vector<std::string>& speeds) {
    std::vector<std::string> command = {Program("REPLAY"), Program("TRACES") + "/resnet50.trace",
                                        "--batch",         "16",
                                        "--iterations",    "1",
                                        "--pattern",       "off",
                                        "--size-scale",    "0.0078125",
                                        "--json"};
    command.insert(command.end(), speeds.begin(), speeds.end());
    const cli::JobProcess job =
        bed.Run({.label = "replay", .command = command, .under_sluice = false});
    EXPECT_TRUE(job.status().ok()) << Describe(job);
    return ReportOf(job).value("kernel_ms", 0.0);
  };
  const double as_shipped = planned_ms({"--machine", "v100-32", "--floor-us", "0"});
  EXPECT_GT(as_shipped, 1);
  EXPECT_NEAR(planned_ms({}), as_shipped, 0.01 * as_shipped);
  const double slow = planned_ms({"--flops", "1e12"});
  EXPECT_GT(slow, 5 * as_shipped) << "what is said aloud wins";
}

TEST(ReplayTest, IterationsTakeTheTimesOfTheirKernelsInVirtualTime) {
  BedOptions options = GpuAlone();
  options.machine = "time = virtual\nlaunch_ns = 100\nalloc_ns = 0\n";
  const TestBed bed(options);
  const Replay replay{"resnet50", "3", {"--floor-us", "50", "--pattern", "off"}};
  const cli::JobProcess job =
      bed.Run({.label = replay.trace, .command = replay.Command(), .under_sluice = false});
  ASSERT_TRUE(job.status().ok()) << Describe(job);
  const nlohmann::json report = ReportOf(job);
  // Launches are issued faster than any kernel is over, so that the GPU never waits for the CPU.
  const double planned = report.at("kernel_ms");
  EXPECT_GT(planned, 411 * 0.05);
  for (const double ms : report.at("iteration_ms").get<std::vector<double>>()) {
    EXPECT_NEAR(ms, planned, 0.01 * planned);
  }
}

/// Two iterations whose peaks do not fit together.
class TwoReplays : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    for (const Replay& replay : Jobs()) {
      const cli::JobProcess job = RunAlone(replay);
      ASSERT_TRUE(job.status().ok()) << Describe(job);
      solo_.push_back(ReportOf(job));
    }
  }
  static void TearDownTestSuite() { solo_.clear(); }
  static std::vector<Replay> Jobs() { return {{"resnet50"}, {"inception_v3"}}; }

  static BedOptions Shared(uint64_t contexts) {
    BedOptions options;
    options.gpu_memory = std::to_string(Pool() + contexts * kContext);
    options.pool = std::to_string(Pool());
    return options;
  }
  static void StartAll(const TestBed& bed, cli::JobGroup& group, bool under_sluice) {
    for (const Replay& replay : Jobs()) {
      group.Add(bed.Start(
          {.label = replay.trace, .command = replay.Command(), .under_sluice = under_sluice}));
    }
  }
  static uint64_t Pool() {
    uint64_t sum = 0;
    for (const nlohmann::json& report : solo_)
      sum += report.at("driver_peak_bytes").get<uint64_t>();
    return sum * 8 / 10 / kHandle * kHandle;
  }

  inline static std::vector<nlohmann::json> solo_;
};

TEST_F(TwoReplays, DoNotFitWithoutSluice) {
  BedOptions options = Shared(2);
  options.start_noded = false;
  const TestBed bed(options);
  cli::JobGroup group;
  StartAll(bed, group, false);
  Finish(group);
  EXPECT_TRUE(
      std::any_of(group.jobs().begin(), group.jobs().end(),
                  [](const cli::JobProcess& job) { return job.status().code == kOutOfMemory; }))
      << Describe(group.jobs()[0]) << Describe(group.jobs()[1]);
}

class TwoReplaysShare : public TwoReplays, public ::testing::WithParamInterface<const char*> {};

TEST_P(TwoReplaysShare, NoMemoryMovesUnderAJob) {
  BedOptions options = Shared(3);
  options.noded_flags = {"--policy", GetParam()};
  TestBed bed(options);
  cli::JobGroup group;
  StartAll(bed, group, true);
  Finish(group, 240'000);
  for (size_t i = 0; i < group.jobs().size(); ++i) ExpectSameWork(solo_[i], group.jobs()[i]);
  ExpectAllGivenBack(bed);
  // What was found to repeat is the trace's iteration, no part of it.
  const scheduler::AuditReport report = bed.log().Audit();
  ASSERT_EQ(report.jobs.size(), 2u);
  for (const auto& [id, job] : report.jobs) {
    EXPECT_LE(job.iterations, kIterations) << id;
    EXPECT_GE(job.iterations, kIterations / 4) << id;
  }
}

INSTANTIATE_TEST_SUITE_P(Policies, TwoReplaysShare,
                         ::testing::Values("flow", "nodegroup", "temporal", "timeshift"),
                         [](const auto& policy) { return std::string(policy.param); });

TEST(ReplayTest, SpoiltMemoryIsFoundUnderSluice) {
  BedOptions options;
  TestBed bed(options);
  const Replay replay{"resnet50", "3", {"--corrupt", "486"}};
  const cli::JobProcess job = bed.Run({.label = replay.trace, .command = replay.Command()});
  EXPECT_EQ(job.status().code, kMismatch) << Describe(job);
}

TEST(ReplayTest, BadInputIsAnsweredWithOneLine) {
  const TestBed bed(GpuAlone());
  const std::string trace = Program("TRACES") + "/resnet50.trace";
  struct Bad {
    std::vector<std::string> arguments;
    std::string says;
  };
  for (const Bad& bad : std::vector<Bad>{
           {{trace, "--batch", "0"}, "--batch must be a whole number from 1"},
           {{trace, "--batch", "4"}, "--bandwidth is missing"},  // the bus has no width there
           {{trace, "--batch", "4", "--machine", "v101"}, "or one of 2080ti-11, demo"},
           {{trace, "--batch", "4", "--machine", Program("TRACES")},
            "--machine: machine file " + Program("TRACES") + ": is a directory"},
           {{trace, "--batch", "4", "--machine", "/dev/null"}, "/dev/null: is empty"},
           {{Program("TRACES"), "--batch", "4"},
            "TRACE: " + Program("TRACES") + ": is a directory"},
           {{"/dev/null", "--batch", "4"}, "TRACE: /dev/null: is empty"},
           {{"/nonexistent", "--batch", "4"}, "TRACE: cannot read /nonexistent"},
           {{trace, "--batch", "4", "--flops", "1e12", "--bandwidth", "1e11", "--corrupt", "9999"},
            "--corrupt: no operator reads block 9999"},
           {{"/nonexistent", "--batch", "4", "--flops", "1e12", "--bandwidth", "1e11"},
            "TRACE: cannot read /nonexistent"},
           {{Program("MACHINES") + "/v100-32.machine", "--batch", "4", "--flops", "1e12",
             "--bandwidth", "1e11"},
            "line 1"}}) {
    std::vector<std::string> command = bad.arguments;
    command.insert(command.begin(), Program("REPLAY"));
    const cli::JobProcess job =
        bed.Run({.label = bad.says, .command = command, .under_sluice = false});
    EXPECT_EQ(job.status().code, 2) << Describe(job);
    ASSERT_EQ(job.err().size(), 1u) << Describe(job);
    EXPECT_NE(job.err().front().find(bad.says), std::string::npos) << Describe(job);
  }
}

}  // namespace
}  // namespace sluice::testing
