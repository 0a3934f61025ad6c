// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "common/read_whole.h"
#include "noderuntime/cli/work_dir.h"
#include "tests/support/peer.h"

namespace sluice::testing {
namespace {

/// Of the commands here, each of which must be answered with one line that names what is wrong.
struct BadCommand {
  const char* name;
  std::vector<std::string> arguments;
  std::vector<std::string> says;
};

class BadInput : public ::testing::Test {
 protected:
  BadInput() : bed_(Options()) {}
  static BedOptions Options() {
    BedOptions options;
    options.gpu_memory = "64MiB";
    options.pool = "16MiB";
    return options;
  }

  static void ExpectOneLine(const BadCommand& bad, const cli::CommandOutput& output) {
    SCOPED_TRACE(bad.name);
    EXPECT_FALSE(output.status.ok());
    EXPECT_EQ(output.status.signal, 0);
    EXPECT_EQ(std::count(output.err.begin(), output.err.end(), '\n'), 1) << output.err;
    for (const std::string& text : bad.says) {
      EXPECT_NE(output.err.find(text), std::string::npos) << "'" << text << "' in: " << output.err;
    }
  }

  TestBed bed_;
};

/// What a program with `words` ends with where nothing can be written, and what it says.
std::pair<int, std::string> OnAFullDevice(const std::string& words,
                                          const std::string& program = "sluice") {
  const cli::WorkDir work = cli::WorkDir::Create("").value();
  const std::string command =
      Program("BIN") + "/" + program + " " + words + " >/dev/full 2>" + work.File("err");
  const int status = std::system(command.c_str());
  return {WEXITSTATUS(status), ReadWhole(work.File("err"))};
}

TEST(Output, ThatCannotBeWrittenIsTold) {
  const std::string trace = Program("TRACES") + "/resnet50.trace";
  for (const std::string& words :
       {std::string("--version"), "simulate " + trace + ":8 --policy temporal",
        "profile " + trace + " --json", "max-batch " + trace + " --policy temporal",
        "place " + trace + " --batch 1 --effort quick"}) {
    const auto& [code, err] = OnAFullDevice(words);
    EXPECT_EQ(code, 2) << words;
    EXPECT_EQ(err, "sluice: the output could not be written: No space left on device\n") << words;
  }
  // The answer to a question that is wrong is not on the standard output.
  EXPECT_EQ(OnAFullDevice("lend").second.find("could not be written"), std::string::npos);
  const auto& [code, err] = OnAFullDevice("--help", "sluice-replay");
  EXPECT_EQ(code, 1);
  EXPECT_EQ(err, "sluice-replay: the output could not be written: No space left on device\n");
}

TEST_F(BadInput, IsAnsweredWithOneLineAndARunningJobDoesNotNotice) {
  Peer peer(bed_);
  peer.AwaitProfile();
  const std::string dir = bed_.runtime_dir();
  const std::string program = Program("WORKLOAD");
  const BadCommand commands[] = {
      {"unknown flag", {"run", "--bogus", "--", program}, {"--bogus", "allowed", "--limit"}},
      {"unknown command", {"lend"}, {"lend", "allowed", "run"}},
      {"unparsable size", {"run", "--limit", "12parsecs", "--", program}, {"--limit", "12parsecs"}},
      {"no size", {"run", "--limit", "", "--", program}, {"--limit"}},
      {"negative size", {"run", "--request", "-1", "--", program}, {"--request"}},
      {"request above limit",
       {"run", "--limit", "1MiB", "--request", "2MiB", "--", program},
       {"--request", "--limit"}},
      {"limit above the GPU",
       {"run", "--runtime-dir", dir, "--limit", "100GiB", "--", program},
       {"limit", "16.0 MiB"}},
      {"request above the GPU",
       {"run", "--runtime-dir", dir, "--request", "100GiB", "--", program},
       {"request", "16.0 MiB"}},
      {"no such GPU", {"run", "--runtime-dir", dir, "--gpu", "7", "--", program}, {"gpu", "0"}},
      {"no program", {"run", "--limit", "1MiB"}, {"program"}},
      {"no such program", {"run", "--", "/nonexistent/program"}, {"/nonexistent/program"}},
      {"no such table", {"place", "/nonexistent/table"}, {"/nonexistent/table"}},
      {"no such log", {"check-log", "/nonexistent/log"}, {"/nonexistent/log"}},
  };
  for (const BadCommand& bad : commands) ExpectOneLine(bad, bed_.Sluice(bad.arguments));
  peer.FinishAndCompare();
}

TEST_F(BadInput, ARequestThatDoesNotFitNamesTheHolders) {
  Peer peer(bed_);
  peer.AwaitProfile();
  // 2 MiB are the peer's by its request, so 15 of 16 MiB cannot be promised to another.
  const cli::CommandOutput output =
      bed_.Sluice({"run", "--runtime-dir", bed_.runtime_dir(), "--request", "15MiB", "--",
                   Program("WORKLOAD"), "--one-shot"});
  EXPECT_FALSE(output.status.ok());
  EXPECT_NE(output.err.find("workload"), std::string::npos) << output.err;
  peer.FinishAndCompare();
}

TEST_F(BadInput, ForTheDaemonIsOneLineToo) {
  const BadCommand commands[] = {
      {"unknown flag", {"--bogus"}, {"--bogus"}},
      {"pool", {"--pool", "lots"}, {"pool", "lots", "allowed"}},
      {"pool above the GPU", {"--pool", "100GiB"}, {"pool", "64.0 MiB"}},
      {"policy", {"--policy", "magic"}, {"policy", "magic", "flow", "temporal"}},
      {"lease unit", {"--lease-unit", "3"}, {"lease-unit", "allowed"}},
      {"handle", {"--handle", "3MiB"}, {"handle", "allowed"}},
      {"lend", {"--lend", "never"}, {"lend", "demand", "eager"}},
  };
  for (const BadCommand& bad : commands) {
    cli::SpawnOptions options;
    options.argv = {Program("BIN") + "/sluice-noded", "--runtime-dir", bed_.work().File("other")};
    options.argv.insert(options.argv.end(), bad.arguments.begin(), bad.arguments.end());
    options.environment = bed_.environment();
    const Result<cli::CommandOutput> output = cli::RunCommand(std::move(options));
    ASSERT_TRUE(output.ok());
    ExpectOneLine(bad, output.value());
  }
}

TEST_F(BadInput, ASecondDaemonInTheSameFolderIsRefused) {
  cli::SpawnOptions options;
  options.argv = {Program("BIN") + "/sluice-noded", "--runtime-dir", bed_.runtime_dir()};
  options.environment = bed_.environment();
  const Result<cli::CommandOutput> output = cli::RunCommand(std::move(options));
  ASSERT_TRUE(output.ok());
  EXPECT_FALSE(output.value().status.ok());
  EXPECT_NE(output.value().err.find(bed_.runtime_dir()), std::string::npos) << output.value().err;
}

// Without the driver's list of processes nothing proves that a dead job's memory is free.
TEST_F(BadInput, ADriverWithoutItsManagementLibraryIsRefused) {
  const std::string folder = bed_.work().File("without-nvml");
  std::filesystem::create_directory(folder);
  std::filesystem::create_symlink(Program("BIN") + "/../simgpu/libcuda.so.1",
                                  folder + "/libcuda.so.1");
  cli::SpawnOptions options;
  options.argv = {Program("BIN") + "/sluice-noded", "--runtime-dir", bed_.work().File("other")};
  options.environment = bed_.environment();
  options.environment.Set("LD_LIBRARY_PATH", folder);
  const Result<cli::CommandOutput> output = cli::RunCommand(std::move(options));
  ASSERT_TRUE(output.ok());
  ExpectOneLine({"no NVML", {}, {"libnvidia-ml.so.1", "list of compute processes"}},
                output.value());
}

TEST_F(BadInput, AMissingCompilerIsOneClearErrorOfThatProgram) {
  Peer peer(bed_);
  peer.AwaitProfile();
  const cli::JobProcess job =
      bed_.Run({.label = "job",
                .command = {Program("WORKLOAD"), "--one-shot"},
                .run_flags = {"--limit", "2MiB"},
                .environment = {{"SLUICE_SIMGPU_CXX", "/nonexistent/c++"},
                                {"SLUICE_SIMGPU_CACHE", bed_.work().File("empty-cache")}}});
  EXPECT_EQ(job.status().code, 3) << Describe(job);
  ASSERT_EQ(job.err().size(), 1u) << Describe(job);
  EXPECT_NE(job.err().front().find("/nonexistent/c++"), std::string::npos) << job.err().front();
  peer.FinishAndCompare();
}

}  // namespace
}  // namespace sluice::testing
