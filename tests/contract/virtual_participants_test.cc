// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
//
// Virtual time of two processes (machine_virtual_pair): schedules computed by hand. The test itself
// takes no part; each test is a round of its own.
#include <signal.h>
#include <unistd.h>

#include <cstdlib>

#include "tests/contract/virtual_time.h"

namespace sluice::contract {

const char* MachineFile() { return SLUICE_MACHINE_VIRTUAL; }

namespace {

constexpr uint64_t kLaunch = 1000;
constexpr uint64_t kSlow = 20'000'000;
constexpr uint64_t kShort = 100'000;

class Participants : public ::testing::Test {
 protected:
  void SetUp() override { OnlySimulated("real GPUs follow real time"); }
};

/// A participant's process.
OtherProcess Start(const char* rank, const char* role) {
  setenv("SLUICE_SIMGPU_RANK", rank, 1);
  return OtherProcess(role);
}

/// A slow kernel and then a short one, each waited for.
int SlowThenShort() {
  TimedProgram p;
  const uint64_t start = p.Clock();
  p.Slow(p.a);
  p.Must(cuStreamSynchronize(p.a), "synchronise");
  const uint64_t slow = p.Clock();
  p.Short(p.a);
  p.Must(cuStreamSynchronize(p.a), "synchronise");
  return Send({slow - start, p.Clock() - start});
}
const bool kSlowThenShort = AddRole("slow, short", SlowThenShort);

int Short() {
  TimedProgram p;
  const uint64_t start = p.Clock();
  p.Short(p.a);
  p.Must(cuStreamSynchronize(p.a), "synchronise");
  const uint64_t end = p.Clock();
  p.Work(50'000'000);
  return Send({end - start, p.Clock() - start});
}
const bool kShortRole = AddRole("short", Short);

struct Pair {
  Times zero;
  Times one;
  bool operator==(const Pair&) const = default;
};

Pair RunPair() {
  OtherProcess one = Start("1", "short");
  OtherProcess zero = Start("0", "slow, short");
  Pair pair{Receive(&zero), Receive(&one)};
  EXPECT_EQ(zero.Join(), 0);
  EXPECT_EQ(one.Join(), 0);
  return pair;
}

TEST_F(Participants, TakeTurnsAsComputedByHand) {
  // Both issue at 1000; rank 0 goes first and is not interrupted. Its second kernel, issued at
  // slow + 1000, finds that of rank 1 on the GPU.
  const uint64_t slow = kLaunch + kSlow;
  const Pair expected{{slow, slow + 2 * kShort}, {slow + kShort, slow + kShort + 50'000'000}};
  EXPECT_EQ(RunPair(), expected);
  EXPECT_EQ(RunPair(), expected);
  const BusyMachine busy;
  EXPECT_EQ(RunPair(), expected);
}

int IssueAndDie() {
  TimedProgram p;
  p.Short(p.a);
  raise(SIGKILL);
  return 0;
}
const bool kIssueAndDie = AddRole("issue and die", IssueAndDie);

TEST_F(Participants, OneThatIsKilledLeavesAndItsWorkWithIt) {
  OtherProcess one = Start("1", "issue and die");
  OtherProcess zero = Start("0", "slow, short");
  const uint64_t slow = kLaunch + kSlow;
  EXPECT_EQ(Receive(&zero), (Times{slow, slow + kLaunch + kShort}));
  EXPECT_EQ(zero.Join(), 0);
  EXPECT_EQ(one.Join(), 128 + SIGKILL);
  EXPECT_EQ(Stat("stalls"), 0u);
}

int Init() { return Send({static_cast<uint64_t>(cuInit(0))}); }
const bool kInit = AddRole("init", Init);

TEST_F(Participants, ARankThatIsNoneIsRefused) {
  for (const char* rank : {"2", "-1", "one", ""}) {
    OtherProcess program = Start(rank, "init");
    EXPECT_EQ(Receive(&program), Times{static_cast<uint64_t>(CUDA_ERROR_NO_DEVICE)}) << rank;
    EXPECT_EQ(program.Join(), 0);
  }
}

}  // namespace
}  // namespace sluice::contract
