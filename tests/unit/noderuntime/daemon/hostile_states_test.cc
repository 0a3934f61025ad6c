// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// Every kind of frame in every state of a job, well-formed and not, against the whole daemon in
// this process: it lives, its ledger is sound after each turn, its neighbours keep what is theirs,
// and the audit finds the log sound. Under `unit`, so that it runs with AddressSanitizer, too.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "tests/fuzz/frames.h"
#include "tests/fuzz/hostile_stage.h"

namespace sluice::fuzz {
namespace {

// NDEBUG: what sanitizers watch is built without it, and takes some thirty times as long.
#ifndef NDEBUG
constexpr uint64_t kFrames = 2'000;
#else
constexpr uint64_t kFrames = 100'000;
#endif
/// So many in a row on one daemon; then its log is audited.
constexpr uint64_t kFramesPerDaemon = 1'000;

uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

uint64_t FramesPerCell() {
  return FromEnvironment("SLUICE_HOSTILE_FRAMES", kFrames) / (kStates * kKinds) + 1;
}
uint64_t Seed() { return FromEnvironment("SLUICE_SEED", 1); }

struct Cell {
  uint64_t sent = 0;
  uint64_t closed = 0;
  uint64_t answered = 0;
};

/// What is being played, for whoever reads how the daemon died.
char g_playing[128] = "";
void SayWhatWasPlayed(int) {
  (void)!::write(STDERR_FILENO, g_playing, std::strlen(g_playing));
  std::signal(SIGABRT, SIG_DFL);
  ::raise(SIGABRT);
}

class HostileStates : public ::testing::TestWithParam<State> {
 protected:
  void SetUp() override { std::signal(SIGABRT, SayWhatWasPlayed); }
  void TearDown() override {
    std::signal(SIGABRT, SIG_DFL);
    std::filesystem::remove_all(folder_);
  }

  /// One daemon's part of a cell. What should have held and did not.
  std::optional<std::string> Play(State state, Kind kind, uint64_t frames, uint64_t seed,
                                  const flow::FaultPlan& faults, Cell* cell) {
    std::snprintf(g_playing, sizeof g_playing, "aborted: '%s' while %s, seed %llu\n", NameOf(kind),
                  NameOf(state), static_cast<unsigned long long>(seed));
    std::mt19937_64 random(seed * 1'000 + static_cast<uint64_t>(state) * kKinds +
                           static_cast<uint64_t>(kind));
    HostileStage stage(folder_, state, faults);
    for (uint64_t i = 0; i < frames && !stage.violation().has_value(); ++i) {
      stage.Bring();
      if (stage.violation().has_value()) break;
      if (random() % 4 == 0) stage.Mark(static_cast<uint32_t>(random()), random() % 64);
      const std::vector<uint8_t> frame = MakeFrame(kind, stage.Look(), random);
      const HostileStage::Reaction reaction = stage.Send(frame, random() % 8 == 0);
      ++cell->sent;
      cell->closed += reaction == HostileStage::Reaction::kClosed;
      cell->answered += reaction == HostileStage::Reaction::kAnswered;
      if (random() % 8 == 0) stage.HonestStep();
      if (random() % 4 == 0) stage.PlayOut();
    }
    stage.End();
    return stage.violation();
  }

  const std::string folder_ = ScratchFolder();
};

TEST_P(HostileStates, NoFrameDoesHarm) {
  const State state = GetParam();
  std::printf("%-9s", NameOf(state));
  for (size_t k = 0; k < kKinds; ++k) {
    const Kind kind = static_cast<Kind>(k);
    Cell cell;
    uint64_t seed = Seed();
    for (uint64_t left = FramesPerCell(); left > 0; ++seed) {
      const uint64_t frames = std::min(left, kFramesPerDaemon);
      const auto violation = Play(state, kind, frames, seed, {}, &cell);
      ASSERT_EQ(violation, std::nullopt)
          << "'" << NameOf(kind) << "' while " << NameOf(state) << ", seed " << seed;
      left -= frames;
    }
    EXPECT_GE(cell.sent, FramesPerCell());
    std::printf("  %s %llu/%llu/%llu", NameOf(kind), static_cast<unsigned long long>(cell.sent),
                static_cast<unsigned long long>(cell.closed),
                static_cast<unsigned long long>(cell.answered));
    std::fflush(stdout);
  }
  std::printf("\n");
}

INSTANTIATE_TEST_SUITE_P(Each, HostileStates,
                         ::testing::Values(State::kWaiting, State::kMeasured, State::kParked,
                                           State::kInside, State::kAsked, State::kLeaving,
                                           State::kAway, State::kReturning, State::kResting,
                                           State::kDying),
                         [](const auto& state) { return std::string(NameOf(state.param)); });

// It would notice: these daemons are broken on purpose.
class BrokenDaemon : public HostileStates {
 protected:
  std::optional<std::string> FirstViolation(const flow::FaultPlan& faults) {
    for (size_t kind = 0; kind < kKinds; ++kind) {
      Cell cell;
      auto violation = Play(GetParam(), static_cast<Kind>(kind), 60, 1, faults, &cell);
      if (violation.has_value()) return violation;
    }
    return std::nullopt;
  }
};

TEST_P(BrokenDaemon, WithoutQuarantineIsFoundOut) {
  flow::FaultPlan faults;
  faults.skip_quarantine = true;
  EXPECT_NE(FirstViolation(faults), std::nullopt);
}

TEST_P(BrokenDaemon, ThatIgnoresFencesIsFoundOut) {
  flow::FaultPlan faults;
  faults.ignore_fences = true;
  EXPECT_NE(FirstViolation(faults), std::nullopt);
}

INSTANTIATE_TEST_SUITE_P(Some, BrokenDaemon, ::testing::Values(State::kMeasured, State::kAway),
                         [](const auto& state) { return std::string(NameOf(state.param)); });

}  // namespace
}  // namespace sluice::fuzz
