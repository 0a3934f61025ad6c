// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "tests/fuzz/frames.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

namespace sluice::fuzz {
namespace {

using Input = std::vector<uint8_t>;

std::vector<Input> Corpus(const std::string& target) {
  const char* root = std::getenv("SLUICE_TEST_CORPUS");
  if (root == nullptr) throw std::runtime_error("SLUICE_TEST_CORPUS is not set");
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(root + ("/" + target))) {
    files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  std::vector<Input> inputs;
  for (const auto& path : files) {
    std::ifstream file(path, std::ios::binary);
    inputs.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return inputs;
}

/// What a fuzzer would try, without one: pieces of the corpus one behind the other, and noise.
Input Mutated(const std::vector<Input>& corpus, std::mt19937& random) {
  Input input;
  for (int i = 0; i < 3; ++i) {
    const Input& from = corpus[random() % corpus.size()];
    input.insert(input.end(), from.begin(), from.end());
  }
  for (size_t i = random() % 12; i > 0 && !input.empty(); --i) {
    input[random() % input.size()] = static_cast<uint8_t>(random());
  }
  return input;
}

class Frames : public ::testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove_all(folder_); }
  /// Of so many mutated inputs, the first that breaks something.
  std::optional<std::string> Search(size_t inputs, const flow::FaultPlan& faults) {
    const std::vector<Input> corpus = Corpus("frames");
    std::mt19937 random(1);
    for (size_t i = 0; i < inputs; ++i) {
      Played played = PlayFrames(Mutated(corpus, random), folder_, faults);
      if (played.violation.has_value()) return played.violation;
    }
    return std::nullopt;
  }
  const std::string folder_ = ScratchFolder();
};

TEST_F(Frames, OfTheCorpusBreakNothing) {
  const std::vector<Input> corpus = Corpus("frames");
  ASSERT_FALSE(corpus.empty());
  size_t frames = 0;
  for (const Input& input : corpus) {
    const Played played = PlayFrames(input, folder_, {});
    EXPECT_FALSE(played.violation.has_value()) << *played.violation;
    frames += played.frames;
  }
  EXPECT_GT(frames, corpus.size());
}

TEST_F(Frames, MutatedBreakNothing) { EXPECT_EQ(Search(300, {}), std::nullopt); }

// The checks would notice: these daemons are broken on purpose.
TEST_F(Frames, ADaemonThatIgnoresFencesIsFoundOut) {
  flow::FaultPlan faults;
  faults.ignore_fences = true;
  EXPECT_NE(Search(300, faults), std::nullopt);
}

TEST_F(Frames, ADaemonWithoutQuarantineIsFoundOut) {
  flow::FaultPlan faults;
  faults.skip_quarantine = true;
  EXPECT_NE(Search(300, faults), std::nullopt);
}

}  // namespace
}  // namespace sluice::fuzz
