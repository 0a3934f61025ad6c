// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/cli/offline/profile.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "noderuntime/cli/offline/files.h"
#include "noderuntime/cli/work_dir.h"

namespace sluice::cli {
namespace {

using nlohmann::json;

class ProfileTest : public testing::Test {
 protected:
  ProfileTest() {
    options_.file = std::string(SLUICE_TRACES) + "/resnet50.trace";
    options_.batch = 344;
  }
  Output Profile() const { return RunProfile(options_, SLUICE_MACHINES); }

  ProfileOptions options_;
};

/// The figures of data/traces/README.md, at another batch.
TEST_F(ProfileTest, SaysWhatAnIterationHolds) {
  options_.json = true;
  const Output output = Profile();
  ASSERT_EQ(output.code, 0) << output.err;
  const json profile = json::parse(output.out, nullptr, false);
  EXPECT_EQ(profile["launches"], 411);
  EXPECT_EQ(profile["curve"].size(), 411u);
  EXPECT_NEAR(profile["iteration_ns"].get<double>(), 749e6, 1e6);
  EXPECT_NEAR(profile["mean_bytes"].get<double>() / profile["peak_bytes"].get<double>(), 0.67,
              0.01);
  // Its host is ahead: it holds what its GPU comes to need within five milliseconds.
  EXPECT_EQ(profile["credit_ns"], 5'000'000);
  EXPECT_GT(profile["mean_held_bytes"].get<double>(), profile["mean_bytes"].get<double>());
  uint64_t held = 0;
  for (const json& point : profile["curve"]) held = std::max<uint64_t>(held, point["held"]);
  EXPECT_EQ(held, profile["peak_bytes"].get<uint64_t>());
  uint64_t sum = 0;
  for (const auto& [kind, bytes] : profile["at_peak"].items()) sum += bytes.get<uint64_t>();
  EXPECT_EQ(sum, profile["peak_bytes"].get<uint64_t>());
  EXPECT_EQ(profile["gates"][0]["launch"], 0);
  uint64_t most = 0;
  for (const json& gate : profile["gates"]) most = std::max<uint64_t>(most, gate["need_units"]);
  EXPECT_EQ(most, (profile["peak_bytes"].get<uint64_t>() + (8 << 20) - 1) / (8 << 20));
}

TEST_F(ProfileTest, AMachineIsAFileThatSaysSomething) {
  options_.gpu = SLUICE_TRACES;
  const Output output = Profile();
  EXPECT_EQ(output.code, 2);
  EXPECT_EQ(output.err, "sluice: --gpu: machine file " SLUICE_TRACES ": is a directory\n");
}

TEST_F(ProfileTest, PrintsTablesForPeople) {
  const std::string text = Profile().out;
  EXPECT_EQ(text.substr(0, text.find('\n')),
            "resnet50 at batch 344, simulated on Tesla V100 32GB (simulated)");
  for (const char* words :
       {"411 launches", "0.67 of the peak", "in the mean, with a credit of 5.0 ms", "feature map",
        "  gate  launch"}) {
    EXPECT_NE(text.find(words), std::string::npos) << text;
  }
}

TEST_F(ProfileTest, WithoutABatchItIsOneThatTheTraceWasMadeFrom) {
  options_.batch = 0;
  const auto heading = [&] { return Profile().out.substr(0, Profile().out.find(", simulated")); };
  EXPECT_EQ(heading(), "resnet50 at batch 8 (the first of its fitted_batches; others: --batch)");
  options_.json = true;
  EXPECT_EQ(json::parse(Profile().out, nullptr, false)["batch"], 8);
  options_.json = false;
  Result<WorkDir> work = WorkDir::Create("");
  ASSERT_TRUE(work.ok());
  options_.file = work->File("t.trace");
  const std::string body = "block 0 persistent 100 0\nop 0 a forward 1 0 1 0 r=0 w=\n";
  for (const char* header : {"", "# fitted_batches=many\n", "# fitted_batches=0,8\n",
                             "# fitted_batches=\n", "# fitted_batches=1048577\n"}) {
    const std::string text = std::string("# sluice-trace 1\n") + header + body;
    ASSERT_TRUE(WriteWholeFile(options_.file, text).ok());
    EXPECT_EQ(heading(), "t at batch 1 (others: --batch)") << header;
  }
  ASSERT_TRUE(WriteWholeFile(options_.file, "# sluice-trace 1\n# op_ns=7\n" + body).ok());
  EXPECT_EQ(heading(), "t at batch 1 (the one that was measured)");
}

TEST_F(ProfileTest, TimesOfARecordingAreSaidToBeIts) {
  const std::string said = "  times      are those of the recording, whatever --gpu is\n";
  EXPECT_EQ(Profile().out.find(said), std::string::npos);
  Result<WorkDir> work = WorkDir::Create("");
  ASSERT_TRUE(work.ok());
  options_.file = work->File("t.trace");
  options_.batch = 1;
  ASSERT_TRUE(WriteWholeFile(options_.file,
                             "# sluice-trace 1\n# op_ns=7\nblock 0 persistent 100 0\n"
                             "op 0 a forward 1 0 1 0 r=0 w=\n")
                  .ok());
  EXPECT_NE(Profile().out.find(said), std::string::npos) << Profile().out;
  options_.json = true;
  EXPECT_EQ(json::parse(Profile().out, nullptr, false)["measured"], true);
}

TEST_F(ProfileTest, ALaunchMayTakeLongerThanFourSeconds) {
  Result<WorkDir> work = WorkDir::Create("");
  ASSERT_TRUE(work.ok());
  options_.file = work->File("long.trace");
  options_.batch = 1;
  ASSERT_TRUE(WriteWholeFile(options_.file,
                             "# sluice-trace 1\nblock 0 persistent 1048576 0\n"
                             "block 1 transient 0 1048576\nalloc 1\n"
                             "op 0 a forward 200000000000000 0 0 0 r=0 w=1\nfree 1\n")
                  .ok());
  EXPECT_NE(Profile().out.find("12738.9 ms of GPU time"), std::string::npos) << Profile().out;
}

TEST_F(ProfileTest, DrawsTheCurve) {
  Result<WorkDir> work = WorkDir::Create("");
  ASSERT_TRUE(work.ok());
  options_.svg = work->File("curve.svg");
  EXPECT_EQ(Profile().code, 0);
  const Result<std::string> svg = ReadWholeFile(options_.svg);
  ASSERT_TRUE(svg.ok());
  EXPECT_EQ(svg->substr(0, 5), "<svg ");
  EXPECT_NE(svg->find("</svg>"), std::string::npos);
  size_t bands = 0;
  for (size_t at = svg->find("<polygon"); at != std::string::npos;
       at = svg->find("<polygon", at + 1)) {
    ++bands;
  }
  EXPECT_EQ(bands, 5u) << "one for each class";
  options_.svg = work->File("no/such/folder.svg");
  EXPECT_EQ(Profile().code, 2);
}

TEST_F(ProfileTest, FaultsNameTheFileAndTheFlag) {
  options_.gpu = "v101";
  EXPECT_NE(Profile().err.find("--gpu: "), std::string::npos);
  options_.gpu = "v100-32";
  options_.file = "/no/such.trace";
  EXPECT_NE(Profile().err.find("/no/such.trace"), std::string::npos);
  EXPECT_EQ(Profile().code, 2);
}

}  // namespace
}  // namespace sluice::cli
