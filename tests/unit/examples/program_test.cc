// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

// The built training program as a user starts it, on a simulated GPU of its own.

namespace {

struct Output {
  int code = -1;
  std::string text;  // both streams
  std::vector<float> losses;
};

Output RunCommand(const std::string& command) {
  Output output;
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return output;
  char line[512];
  while (std::fgets(line, sizeof line, pipe) != nullptr) {
    output.text += line;
    int iteration = 0;
    char value[64];
    if (std::sscanf(line, "loss %d %63s", &iteration, value) != 2) continue;
    EXPECT_EQ(static_cast<size_t>(iteration), output.losses.size()) << line;
    output.losses.push_back(std::strtof(value, nullptr));
  }
  const int status = pclose(pipe);
  output.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return output;
}

class ProgramTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = (std::filesystem::temp_directory_path() / "train-test-XXXXXX").string();
    ASSERT_NE(mkdtemp(folder_.data()), nullptr);
  }
  void TearDown() override {
    if (!gpu_.empty()) {
      const Output down = RunCommand(std::string(SIMGPU_CTL) + " down " + gpu_);
      EXPECT_EQ(down.code, 0) << down.text;
    }
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  void StartGpu(const std::string& memory) {
    gpu_ = folder_ + "/gpu";
    const Output up = RunCommand(std::string(SIMGPU_CTL) + " up " + gpu_ + " --memory " + memory);
    ASSERT_EQ(up.code, 0) << up.text;
  }
  Output Train(const std::string& arguments, const std::string& environment = "") {
    return RunCommand("SLUICE_SIMGPU=" + gpu_ + " LD_LIBRARY_PATH=" SIMGPU_LIBRARIES " " +
                      environment + " " TRAIN_PROGRAM " " + arguments);
  }

  std::string folder_, gpu_;
};

/// The number behind `key` in the last line.
size_t Value(const Output& output, const std::string& key) {
  const size_t at = output.text.rfind(key + "=");
  return at == std::string::npos ? 0 : std::stoul(output.text.substr(at + key.size() + 1));
}

TEST_F(ProgramTest, TwoRunsPrintTheSameAndTheLossFalls) {
  StartGpu("64MiB");
  const std::string arguments = "--iterations 200 --batch 32 --depth 1 --stages 1";
  const Output first = Train(arguments);
  ASSERT_EQ(first.code, 0) << first.text;
  ASSERT_EQ(first.losses.size(), 200u);
  EXPECT_LT(first.losses.back(), 0.5f * first.losses.front());
  EXPECT_EQ(Value(first, "iterations"), 200u);
  EXPECT_EQ(Train(arguments).text, first.text);
  // When the losses are fetched changes nothing.
  EXPECT_EQ(Train(arguments + " --print-lag 1").text, first.text);
  EXPECT_NE(Train(arguments + " --seed 2").text, first.text);
}

TEST_F(ProgramTest, PresetsHaveALowTroughUnderATallPeak) {
  StartGpu("96MiB");
  for (const char* model : {"small-a", "small-b"}) {
    const Output output = Train(std::string("--iterations 3 --model ") + model);
    ASSERT_EQ(output.code, 0) << output.text;
    EXPECT_GE(Value(output, "peak_bytes"), size_t{26} << 20) << model;
    EXPECT_LE(Value(output, "peak_bytes"), size_t{40} << 20) << model;
    EXPECT_LE(Value(output, "base_bytes") * 20, Value(output, "peak_bytes")) << model;
  }
}

TEST_F(ProgramTest, AdamTrainsToo) {
  StartGpu("64MiB");
  const Output output =
      Train("--iterations 60 --batch 64 --depth 1 --optimizer adam --learning-rate 0.01");
  ASSERT_EQ(output.code, 0) << output.text;
  EXPECT_LT(output.losses.back(), 0.5f * output.losses.front());
}

TEST_F(ProgramTest, TooSmallAGpuEndsWithThree) {
  StartGpu("20MiB");
  const Output output = Train("--iterations 3");
  EXPECT_EQ(output.code, 3) << output.text;
  EXPECT_NE(output.text.find("out of memory: could not allocate 1048576 bytes\n"),
            std::string::npos)
      << output.text;
}

TEST_F(ProgramTest, BadOptionsEndWithTwoBeforeTheGpuIsTouched) {
  const Output output = Train("--batch none");
  EXPECT_EQ(output.code, 2);
  EXPECT_EQ(output.text, "train: --batch must be a whole number from 1 to 16384, not 'none'\n");
  EXPECT_EQ(Train("--data /nonexistent").code, 2);
}

TEST_F(ProgramTest, MissingCompilerIsOneClearError) {
  StartGpu("64MiB");
  const Output output = Train("--iterations 1", "SLUICE_SIMGPU_CXX=/nonexistent");
  EXPECT_EQ(output.code, 1);
  EXPECT_NE(output.text.find("SLUICE_SIMGPU_CXX names '/nonexistent'"), std::string::npos)
      << output.text;
}

TEST_F(ProgramTest, OwnDataAndADeviceThatIsNotThere) {
  StartGpu("64MiB");
  const std::string file = folder_ + "/data.txt";
  FILE* data = std::fopen(file.c_str(), "w");
  ASSERT_NE(data, nullptr);
  std::fprintf(data, "%s 1\n%s 2\n", std::string(64, '0').c_str(), std::string(64, 'g').c_str());
  std::fclose(data);
  const Output output = Train("--iterations 20 --batch 2 --depth 1 --data " + file);
  ASSERT_EQ(output.code, 0) << output.text;
  EXPECT_LT(output.losses.back(), output.losses.front());
  const Output missing = Train("--device 5");
  EXPECT_EQ(missing.code, 1);
  EXPECT_NE(missing.text.find("--device must be less than"), std::string::npos) << missing.text;
}

}  // namespace
