// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/cli/offline/simulate.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "noderuntime/cli/offline/files.h"
#include "noderuntime/cli/options.h"
#include "noderuntime/cli/work_dir.h"

namespace sluice::cli {
namespace {

using nlohmann::json;
using scheduler::simulate::Setting;

/// Resnet50 as recorded (data/traces), on the machines that come with the program.
class SimulateTest : public testing::Test {
 protected:
  SimulateTest() { options_.scenario.setting.claims = scheduler::Claims::kCurve; }

  void Add(uint64_t batch, const std::string& model = "resnet50") {
    options_.jobs.push_back({std::string(SLUICE_TRACES) + "/" + model + ".trace", batch});
  }
  Output Simulate() const { return RunSimulate(options_, SLUICE_MACHINES); }
  json Answer() {
    options_.json = true;
    const Output output = Simulate();
    EXPECT_EQ(output.code, 0) << output.err;
    return json::parse(output.out, nullptr, false);
  }

  /// The same question with the flags of an answer.
  void AskWithFlagsOf(const json& found) {
    std::vector<std::string> words = {"simulate", "a.trace:1"};
    std::istringstream flags(found["flags"].get<std::string>());
    for (std::string word; flags >> word;) words.push_back(word);
    const auto asked = ParseCommandLine(words, Environment());
    ASSERT_TRUE(asked.ok()) << asked.status().message();
    const ScenarioOptions& read =
        std::get<SimulateOptions>(std::get<OfflineOptions>(*asked)).scenario;
    options_.scenario.policy = read.policy;
    options_.scenario.setting = read.setting;
    options_.scenario.finds_residents = read.finds_residents;
    options_.scenario.host_units = read.host_units;
  }

  SimulateOptions options_;
};

TEST_F(SimulateTest, TellsHowFastTheyAreAndWhoWaits) {
  options_.scenario.sharing = Sharing::kMps;
  options_.scenario.sharing_variant = SharingVariant::kRoofline;
  Add(344);
  Add(344);
  const json answer = Answer();
  EXPECT_EQ(answer["simulated"], true);
  EXPECT_EQ(answer["pool_bytes"], uint64_t{31} << 30) << "32 GiB, less two contexts of 512 MiB";
  EXPECT_NEAR(answer["jobs"][0]["gpu_ms_alone"].get<double>(), 749, 1);
  const auto policy = answer["setting"]["policy"].get<std::string>();
  EXPECT_NE(policy, "temporal");
  EXPECT_NEAR(answer["throughput_temporal"].get<double>(), 1, 0.01);
  EXPECT_GT(answer["throughput"].get<double>(), 1.05);
  EXPECT_LE(answer["throughput"].get<double>(),
            answer["throughput_unlimited_memory"].get<double>());
  EXPECT_LE(answer["most_held_bytes"].get<uint64_t>(), uint64_t{31} << 30);
  options_.json = false;
  const Output text = Simulate();
  EXPECT_EQ(text.out.substr(0, 51), "simulated on Tesla V100 32GB (simulated), pool 31.0");
  EXPECT_NE(text.out.find("shared by        " + policy + ", 2 lanes"), std::string::npos)
      << text.out;
}

TEST_F(SimulateTest, EveryPolicyAnswers) {
  Add(32);
  Add(32);
  for (const char* policy : {"temporal", "flow", "spatial", "auto"}) {
    options_.scenario.policy = policy;
    const json answer = Answer();
    EXPECT_GT(answer["throughput"].get<double>(), 0.9) << policy;
    EXPECT_EQ(answer["most_held_bytes"].is_null(), std::string(policy) == "spatial");
  }
}

TEST_F(SimulateTest, SaysWhatEachJobHolds) {
  Add(64);
  Add(32);
  options_.scenario.policy = "temporal";
  const json answer = Answer();
  for (const json& job : answer["jobs"]) {
    const auto peak = job["peak_bytes"].get<uint64_t>();
    const uint64_t unit = uint64_t{8} << 20;
    EXPECT_EQ(job["most_held_bytes"].get<uint64_t>(), (peak + unit - 1) / unit * unit);
  }
  options_.scenario.policy = "spatial";
  EXPECT_FALSE(Answer()["jobs"][0].contains("most_held_bytes"));
}

/// Its peak, a thirty-second and six units.
TEST_F(SimulateTest, WithPlacingJobsHoldWhatTheirGatesAskFor) {
  Add(64);
  Add(32);
  options_.scenario.placing = scheduler::Placing::kPieces;
  for (const char* policy : {"temporal", "flow", "auto"}) {
    options_.scenario.policy = policy;
    const json answer = Answer();
    EXPECT_EQ(answer["placing"], "pieces");
    for (const json& job : answer["jobs"]) {
      const auto peak = job["peak_bytes"].get<uint64_t>();
      const uint64_t unit = uint64_t{8} << 20;
      EXPECT_EQ(job["most_held_bytes"].get<uint64_t>(),
                (peak + peak / 32 + unit - 1) / unit * unit + 6 * unit)
          << policy;
    }
  }
  options_.json = false;
  const Output text = Simulate();
  EXPECT_NE(text.out.find("  placing          pieces"), std::string::npos);
  EXPECT_NE(text.out.find("; resnet50 5.6 GiB, resnet50 2.9 GiB\n"), std::string::npos) << text.out;
  options_.scenario.placing = scheduler::Placing::kPacked;
  EXPECT_EQ(Simulate().out.find("placing"), std::string::npos);
  EXPECT_EQ(Answer()["placing"], "packed");
}

/// A node lets jobs begin as long as what lives fits.
TEST_F(SimulateTest, WithPlacingTheyMayHaveLessThanTheyAskFor) {
  Add(64);
  Add(64);
  const uint64_t unit = uint64_t{8} << 20;
  options_.scenario.policy = "temporal";
  const json packed = Answer()["jobs"][0];
  const uint64_t base = (packed["base_bytes"].get<uint64_t>() + unit - 1) / unit * unit;
  const auto lives = packed["most_held_bytes"].get<uint64_t>();
  options_.scenario.placing = scheduler::Placing::kPieces;
  for (const char* policy : {"temporal", "flow", "auto"}) {
    options_.scenario.policy = policy;
    options_.scenario.pool_bytes.reset();
    const uint64_t asks = lives + lives / 32 / unit * unit + 7 * unit;
    EXPECT_EQ(Answer()["jobs"][0]["most_held_bytes"], asks) << policy;
    for (const auto& [pool, tight] : {std::pair{base + asks, false}, {base + asks - unit, true}}) {
      options_.scenario.pool_bytes = pool;
      const json answer = Answer();
      EXPECT_EQ(answer["tight"], tight) << policy;
      EXPECT_EQ(answer["jobs"][0]["most_held_bytes"], pool - base) << policy;
    }
    options_.json = false;
    EXPECT_NE(Simulate().out.find("a job may run out of memory"), std::string::npos);
    options_.scenario.pool_bytes = base + lives;
    EXPECT_EQ(Answer()["jobs"][0]["most_held_bytes"], lives) << policy;
    options_.scenario.pool_bytes = base + lives - unit;
    const Output output = Simulate();
    EXPECT_EQ(output.code, 1) << policy;
    EXPECT_NE(output.err.find("'resnet50' needs "), std::string::npos) << output.err;
  }
}

TEST_F(SimulateTest, SaysWhatDoesNotFit) {
  Add(344);
  Add(344);
  options_.scenario.pool_bytes = uint64_t{28} << 30;
  for (const char* policy : {"temporal", "auto"}) {
    options_.scenario.policy = policy;
    const Output output = Simulate();
    EXPECT_EQ(output.code, 1);
    EXPECT_EQ(output.out, "");
    EXPECT_NE(output.err.find("they do not fit: "), std::string::npos) << output.err;
  }
  options_.json = true;
  const Output output = Simulate();
  EXPECT_EQ(output.code, 1);
  const json answer = json::parse(output.out, nullptr, false);
  ASSERT_TRUE(answer.is_object()) << output.out;
  EXPECT_EQ(answer["simulated"], true);
  EXPECT_EQ("sluice: " + answer["error"].get<std::string>() + "\n", output.err);
}

TEST_F(SimulateTest, WhatAutoFoundCanBeAskedForAgain) {
  options_.scenario.sharing_variant = SharingVariant::kRoofline;
  options_.scenario.iterations = 3;
  Add(200);
  Add(64, "bert-base");
  std::set<std::string> policies;
  for (const Sharing sharing : {Sharing::kMps, Sharing::kTimeSlice}) {
    for (const uint64_t gibibytes : {19u, 25u}) {
      options_.scenario.sharing = sharing;
      options_.scenario.pool_bytes = gibibytes << 30;
      options_.scenario.policy = "auto";
      const json found = Answer();
      ASSERT_TRUE(found.is_object());
      policies.insert(found["setting"]["policy"]);
      AskWithFlagsOf(found);
      EXPECT_EQ(Answer(), found) << found["flags"];
      options_.scenario.setting = {};
      options_.scenario.setting.claims = scheduler::Claims::kCurve;
    }
  }
  EXPECT_GT(policies.size(), 1u);
}

/// Three bases and one peak: as many bases fewer as are away, and two jobs have their peaks.
TEST_F(SimulateTest, BasesInHostMemoryMakeRoom) {
  options_.scenario.gpu = "h200";
  options_.scenario.sharing = Sharing::kMps;
  options_.scenario.iterations = 3;
  options_.scenario.max_gates = 8;
  options_.scenario.pool_bytes = uint64_t{824} << 20;
  options_.scenario.setting.claims = scheduler::Claims::kContract;
  for (int i = 0; i < 3; ++i) Add(2);
  const json stay = Answer();
  EXPECT_TRUE(stay["setting"]["residents"].is_null());
  EXPECT_TRUE(stay["setting"]["slice_ms"].is_null());
  EXPECT_FALSE(stay["jobs"][0].contains("swaps"));
  options_.scenario.finds_residents = true;
  options_.scenario.host_units = 40;
  const json found = Answer();
  EXPECT_EQ(found["setting"]["residents"], 2);
  EXPECT_GT(found["throughput"].get<double>(), 1.5 * stay["throughput"].get<double>());
  // By hand: 128 times 205,873,400 bytes of base, in 25 units, at 48 GB/s.
  EXPECT_NEAR(found["setting"]["slice_ms"].get<double>(), 559.24, 0.01);
  AskWithFlagsOf(found);
  EXPECT_EQ(options_.scenario.host_units, 40u);
  EXPECT_EQ(Answer(), found) << found["flags"];
  options_.json = false;
  const std::string text = Simulate().out;
  EXPECT_NE(text.find("samples/s   swaps\n"), std::string::npos) << text;
  EXPECT_NE(text.find(", 2 bases in the pool, the others by turns of 0.5592 s\n"),
            std::string::npos)
      << text;
}

TEST_F(SimulateTest, TheHostLinkAndHostMemoryCount) {
  options_.scenario.sharing = Sharing::kMps;
  options_.scenario.iterations = 3;
  options_.scenario.max_gates = 8;
  options_.scenario.pool_bytes = uint64_t{824} << 20;
  options_.scenario.policy = "flow";
  options_.scenario.setting.policy.residents = 2;
  options_.scenario.setting.policy.slice_ns = 150'000'000;
  for (int i = 0; i < 3; ++i) Add(2);
  const auto swaps = [](const json& answer) {
    uint64_t sum = 0;
    for (const json& job : answer["jobs"]) sum += job["swaps"].get<uint64_t>();
    return sum;
  };
  const json slow = Answer();
  EXPECT_GT(swaps(slow), 0u);
  double progress = 0;
  for (const json& job : slow["jobs"]) {
    progress += job["gpu_ms_alone"].get<double>() / job["iteration_ms"].get<double>();
  }
  EXPECT_NEAR(progress, slow["throughput"].get<double>(), 1e-6)
      << "the time that a base is away is in the mean of its iterations";
  options_.scenario.host_units = 24;  // a base has 25
  EXPECT_EQ(swaps(Answer()), 0u);
  options_.scenario.host_units = std::nullopt;
  options_.scenario.setting.policy.residents = 3;
  EXPECT_EQ(swaps(Answer()), 0u) << "all";
}

TEST_F(SimulateTest, MoreThanThePoolIsRefusedByItsFlag) {
  Add(32);
  Add(32);
  const auto fault = [&] {
    const Output output = Simulate();
    EXPECT_EQ(output.code, 2) << output.err;
    return output.err;
  };
  options_.scenario.unit_bytes = uint64_t{64} << 30;
  EXPECT_EQ(fault(),
            "sluice: --unit: 64.0 GiB is more than the pool of 31.0 GiB; allowed: at most that, or "
            "with a larger --pool\n");
  options_.scenario.unit_bytes = uint64_t{8} << 20;
  options_.scenario.policy = "flow";
  options_.scenario.setting.budget = 5000;
  EXPECT_NE(fault().find("--budget: 39.1 GiB is more than the pool of 31.0 GiB"),
            std::string::npos);
  options_.scenario.setting.budget = 0;
  options_.scenario.setting.policy.soft_budget = 5000;
  EXPECT_NE(fault().find("--soft-budget: 39.1 GiB is more than the pool"), std::string::npos);
}

TEST_F(SimulateTest, ContextsThatLeaveNoPoolAreToldOf) {
  for (int i = 0; i < 64; ++i) Add(1);
  const Output output = Simulate();
  EXPECT_EQ(output.code, 1);
  EXPECT_NE(output.err.find("64 contexts of 512.0 MiB leave no more of the GPU"), std::string::npos)
      << output.err;
}

TEST_F(SimulateTest, SpatialPagesWhatDoesNotFit) {
  options_.scenario.sharing = Sharing::kMps;
  options_.scenario.policy = "spatial";
  Add(32);
  Add(32);
  const json fits = Answer();
  EXPECT_FALSE(fits.contains("paging"));
  options_.scenario.pool_bytes = uint64_t{3500} << 20;  // two peaks have 5.9 GiB
  const json pages = Answer();
  ASSERT_TRUE(pages.contains("paging"));
  const json& paging = pages["paging"];
  EXPECT_GT(paging["moved_bytes"].get<uint64_t>(), uint64_t{1} << 30);
  EXPECT_EQ(paging["moved_bytes"].get<uint64_t>(),
            paging["to_gpu_bytes"].get<uint64_t>() + paging["to_host_bytes"].get<uint64_t>());
  EXPECT_LE(paging["busy_part"].get<double>(), 1);
  EXPECT_LT(pages["throughput"].get<double>(), 0.9 * fits["throughput"].get<double>());
  EXPECT_GT(pages["throughput_temporal"].get<double>(), 0.9);
  options_.json = false;
  EXPECT_NE(Simulate().out.find("paging           "), std::string::npos);
}

TEST_F(SimulateTest, FaultsNameTheFileAndTheFlag) {
  const auto fault = [&] {
    const Output output = Simulate();
    EXPECT_EQ(output.code, 2);
    return output.err;
  };
  Add(1, "no-such-model");
  EXPECT_NE(fault().find("no-such-model.trace"), std::string::npos);
  options_.jobs.clear();
  Add(1);
  options_.scenario.gpu = "v101";
  EXPECT_NE(fault().find("--gpu: "), std::string::npos);
  EXPECT_NE(fault().find("v100-32"), std::string::npos) << "what there is";
  options_.scenario.gpu = "demo";
  EXPECT_NE(fault().find("--pool: needed"), std::string::npos);
  options_.scenario.gpu = "v100-32";
  Result<WorkDir> work = WorkDir::Create("");
  ASSERT_TRUE(work.ok());
  options_.jobs.front().file = work->File("broken.trace");
  ASSERT_TRUE(WriteWholeFile(options_.jobs.front().file, "# sluice-trace 1\nblock 0 x 1 1\n").ok());
  EXPECT_NE(fault().find("broken.trace: line 2: "), std::string::npos) << fault();
}

TEST_F(SimulateTest, AMachineIsAFileThatSaysSomething) {
  const Result<WorkDir> work = WorkDir::Create("");
  ASSERT_TRUE(work.ok());
  Add(1);
  options_.scenario.gpu = SLUICE_MACHINES;
  EXPECT_EQ(Simulate().err, "sluice: --gpu: machine file " SLUICE_MACHINES ": is a directory\n");
  options_.scenario.gpu = work->File("empty.machine");
  ASSERT_TRUE(WriteWholeFile(options_.scenario.gpu, "").ok());
  const Output output = Simulate();
  EXPECT_EQ(output.code, 2);
  EXPECT_EQ(output.err, "sluice: --gpu: machine file " + options_.scenario.gpu +
                            ": is empty; allowed: lines of 'key = value'\n");
}

TEST_F(SimulateTest, ARunThatIsTooLongIsNoQuestionOfMemory) {
  Add(1 << 20);
  options_.scenario.pool_bytes = uint64_t{100} << 40;
  options_.scenario.policy = "flow";
  const Output output = Simulate();
  EXPECT_EQ(output.code, 2);
  EXPECT_NE(output.err.find(
                "sluice: the run is longer than the 10000 s that are simulated: an iteration of "
                "resnet50 takes 22"),
            std::string::npos)
      << output.err;
}

TEST_F(SimulateTest, SlicesThatAreTooLongAreRefusedAtOnce) {
  for (int i = 0; i < 11; ++i) Add(1);
  options_.scenario.policy = "flow";
  options_.scenario.setting.policy.residents = 10;
  options_.scenario.setting.policy.slice_ns = 1'000'000'000'000;
  const Output output = Simulate();
  EXPECT_EQ(output.code, 2);
  EXPECT_EQ(output.err,
            "sluice: --slice: 1000.0 s for each of 11 jobs is longer than the 10000 s that are "
            "simulated; allowed: below 909.1 s\n");
  options_.jobs.pop_back();
  EXPECT_EQ(Simulate().code, 0) << "all stay";
}

/// One operator of 3 ms beside a block that lives across it.
constexpr char kMeasured[] =
    "# sluice-trace 1\n"
    "# op_ns=3000000\n"
    "block 0 persistent 1048576 0\n"
    "op 0 work forward 0 0 0 0 r= w=\n";

TEST_F(SimulateTest, TimesOfARecordingAreSaidToBeIts) {
  const Result<WorkDir> work = WorkDir::Create("");
  ASSERT_TRUE(work.ok());
  const std::string file = work->File("seen.trace");
  ASSERT_TRUE(WriteWholeFile(file, kMeasured).ok());
  options_.scenario.policy = "temporal";
  options_.scenario.gpu = "p100-16";
  options_.jobs = {{file, 1}, {file, 1}};
  Add(1);
  const json jobs = Answer()["jobs"];
  ASSERT_EQ(jobs.size(), 3u);
  EXPECT_EQ(jobs[0]["measured"], true);
  EXPECT_EQ(jobs[2]["measured"], false);
  options_.json = false;
  const std::string text = Simulate().out;
  EXPECT_NE(text.find("\n  times            of seen are those of its recording, whatever --gpu "
                      "is\n"),
            std::string::npos)
      << text;
  options_.jobs.erase(options_.jobs.begin(), options_.jobs.begin() + 2);
  EXPECT_EQ(Simulate().out.find("recording"), std::string::npos);
}

TEST_F(SimulateTest, CreditIsSaidAsItIs) {
  Setting setting;
  EXPECT_NE(Describe(setting, 1).find(", credit 1/8 of an iteration"), std::string::npos);
  setting.credit_parts = 2.5;
  EXPECT_NE(Describe(setting, 1).find(", credit 1/2.5 of an iteration"), std::string::npos);
}

TEST_F(SimulateTest, DrainingIsSaidAsItIs) {
  using scheduler::simulate::Drain;
  options_.scenario.policy = "flow";
  options_.scenario.iterations = 3;
  options_.scenario.pool_bytes = uint64_t{4} << 30;
  Add(16);
  Add(16);
  for (const auto& [drain, said, text] :
       {std::tuple{Drain::kWhenOthersWait, "when others wait", ""},
        {Drain::kWhenOthersAreThere, "when others are there", ", draining at each trough"},
        {Drain::kNever, "never", ", no draining"}}) {
    options_.scenario.setting.drain = drain;
    EXPECT_EQ(Answer()["setting"]["drain"], said);
    const std::string described = Describe(options_.scenario.setting, 1);
    const size_t at = described.find("drain");
    EXPECT_EQ(at != std::string::npos, *text != '\0') << described;
    EXPECT_NE(described.find(text), std::string::npos) << described;
  }
}

}  // namespace
}  // namespace sluice::cli
