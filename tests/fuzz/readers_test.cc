// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "tests/fuzz/readers.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <stdexcept>

#include "scheduler/trace/at_batch.h"
#include "scheduler/trace/parse.h"

namespace sluice::fuzz {
namespace {

using Play = std::optional<std::string> (*)(std::string_view);

/// The committed inputs by name.
std::map<std::string, std::string> Corpus(const std::string& target) {
  const char* root = std::getenv("SLUICE_TEST_CORPUS");
  if (root == nullptr) throw std::runtime_error("SLUICE_TEST_CORPUS is not set");
  std::map<std::string, std::string> inputs;
  for (const auto& entry : std::filesystem::directory_iterator(root + ("/" + target))) {
    std::ifstream file(entry.path(), std::ios::binary);
    inputs[entry.path().filename()] = {std::istreambuf_iterator<char>(file),
                                       std::istreambuf_iterator<char>()};
  }
  return inputs;
}

void PlayAll(const std::string& target, Play play) {
  std::mt19937 random(1);
  const auto corpus = Corpus(target);
  ASSERT_FALSE(corpus.empty());
  for (const auto& [name, input] : corpus) {
    EXPECT_EQ(play(input), std::nullopt) << name;
    for (int round = 0; round < 2000; ++round) {
      std::string mutated = input;
      for (size_t i = 1 + random() % 3; i > 0 && !mutated.empty(); --i) {
        mutated[random() % mutated.size()] = static_cast<char>(random());
      }
      ASSERT_EQ(play(mutated), std::nullopt) << name;
    }
  }
}

TEST(Readers, OfTracesStandUpToTheCorpus) { PlayAll("trace", PlayTrace); }

TEST(Readers, OfSnapshotsStandUpToTheCorpus) { PlayAll("snapshot", PlaySnapshot); }

TEST(Readers, OfTablesStandUpToTheCorpus) { PlayAll("table", PlayTable); }

TEST(Readers, ReadTheGoodInputsOfTheCorpus) {
  for (const char* name : {"records", "no-operators", "measured"}) {
    EXPECT_TRUE(scheduler::trace::ParseTrace(Corpus("trace")[name]).ok()) << name;
  }
  const auto measured = scheduler::trace::ParseTrace(Corpus("trace")["measured"]);
  EXPECT_TRUE(scheduler::trace::AtBatch(*measured, 1).ok());
  for (const char* name : {"iteration", "protocol-0", "protocol-2", "protocol-5"}) {
    EXPECT_TRUE(scheduler::trace::ImportSnapshot(Corpus("snapshot")[name]).ok()) << name;
  }
  for (const char* name : {"buffers", "offsets", "none", "large"}) {
    EXPECT_TRUE(scheduler::ParseInstance(Corpus("table")[name]).ok()) << name;
  }
}

// The checks would notice: these readers would be wrong.
TEST(Readers, AWrongParserIsFoundOut) {
  const std::string text = "# sluice-trace 1\nblock 0 input 1 2\n";
  const auto fault = [](const char* message) {
    return Result<scheduler::trace::Trace>(Status(StatusCode::kInvalidArgument, message));
  };
  EXPECT_EQ(JudgeParse(text, scheduler::trace::ParseTrace(text)), std::nullopt);
  EXPECT_EQ(JudgeParse(text, fault("line 2: id: wrong")), std::nullopt);
  EXPECT_NE(JudgeParse(text + " ", scheduler::trace::ParseTrace(text)), std::nullopt);
  for (const char* message : {"", "line 3: id: wrong", "line 0: id: wrong", "line 2 id",
                              "id: wrong", "line 2: id: wrong\n", "line 2: \xff"}) {
    EXPECT_NE(JudgeParse(text, fault(message)), std::nullopt) << message;
  }
}

TEST(Readers, AWrongTableIsFoundOut) {
  const std::string text = "id,lower,upper,size\na,0,2,5\n";
  const Result<scheduler::Instance> good = scheduler::ParseInstance(text);
  EXPECT_EQ(JudgeTable(text, good), std::nullopt);
  const auto wrong = [&](auto change) {
    scheduler::Instance instance = *good;
    change(instance);
    return JudgeTable(text, Result<scheduler::Instance>(instance)).has_value();
  };
  EXPECT_TRUE(wrong([](scheduler::Instance& made) { made.ids.clear(); }));
  EXPECT_TRUE(wrong([](scheduler::Instance& made) { made.buffers[0].upper = 0; }));
  EXPECT_TRUE(wrong([](scheduler::Instance& made) { made.buffers[0].size = 0; }));
  EXPECT_TRUE(wrong([](scheduler::Instance& made) { made.ids[0] = "a,b"; }));
  EXPECT_TRUE(wrong([](scheduler::Instance& made) {
    made.ids.push_back(made.ids[0]);
    made.buffers.push_back(made.buffers[0]);
  })) << "two of one name";
  const auto fault = [](const char* message) {
    return Result<scheduler::Instance>(Status(StatusCode::kInvalidArgument, message));
  };
  EXPECT_EQ(JudgeTable(text, fault("line 2: size: wrong")), std::nullopt);
  for (const char* message : {"", "line 3: size: wrong", "size: wrong", "line 1: \n"}) {
    EXPECT_NE(JudgeTable(text, fault(message)), std::nullopt) << message;
  }
}

TEST(Readers, AWrongImportIsFoundOut) {
  const auto fault = [](const char* message) {
    return Result<scheduler::trace::SnapshotImport>(Status(StatusCode::kInvalidArgument, message));
  };
  EXPECT_EQ(JudgeImport("N.", fault("byte 1: STOP: wrong")), std::nullopt);
  EXPECT_EQ(JudgeImport("N.", fault("device_traces: missing")), std::nullopt);
  for (const char* message : {"", "byte 3: STOP: wrong", "byte x: STOP", "size: \x80"}) {
    EXPECT_NE(JudgeImport("N.", fault(message)), std::nullopt) << message;
  }
  scheduler::trace::SnapshotImport import;
  EXPECT_EQ(JudgeImport("N.", import), std::nullopt);
  import.trace.blocks.resize(1);
  EXPECT_NE(JudgeImport("N.", import), std::nullopt) << "a transient block that nobody allocates";
}

}  // namespace
}  // namespace sluice::fuzz
