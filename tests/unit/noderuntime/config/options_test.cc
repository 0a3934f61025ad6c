// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/config/options.h"

#include <gtest/gtest.h>

namespace sluice::config {
namespace {

Options Good() {
  Options options;
  options.runtime_dir = "/tmp/sluice-test";
  return options;
}

/// The whole message of the one fault that `change` makes.
template <typename Change>
std::string Fault(Change change) {
  Options options = Good();
  change(options);
  return Validate(options).message();
}

TEST(Options, DefaultsAreGood) { EXPECT_TRUE(Validate(Good()).ok()); }

TEST(Options, EachFaultNamesItsFieldAndWhatIsAllowed) {
  EXPECT_EQ(Fault([](Options& o) { o.runtime_dir = "relative"; }),
            "--runtime-dir 'relative': allowed: an absolute path of at most 79 characters");
  EXPECT_EQ(Fault([](Options& o) {
              o.unit_bytes = 3 * kMiB;
              o.handle_bytes = 6 * kMiB;
            }),
            "--lease-unit 3.0 MiB: allowed: a power of two from 4 KiB");
  EXPECT_EQ(Fault([](Options& o) { o.handle_bytes = 12 * kMiB; }),
            "--handle 12.0 MiB: allowed: a multiple of the lease unit (8.0 MiB)");
  EXPECT_EQ(Fault([](Options& o) {
              o.handle_bytes = 32 * kMiB;
              o.pool_bytes = 16 * kMiB;
            }),
            "--pool 16.0 MiB: allowed: at least one handle (32.0 MiB)");
  EXPECT_EQ(Fault([](Options& o) { o.host_memory_bytes = 4 * kMiB; }),
            "--host-memory 4.0 MiB: allowed: 0 (none), or at least one lease unit (8.0 MiB)");
  EXPECT_EQ(Fault([](Options& o) { o.grants = "run/sluice"; }),
            "--grants 'run/sluice': allowed: an absolute path of at most 60 characters");
  EXPECT_EQ(Fault([](Options& o) { o.policy = "magic"; }),
            "--policy 'magic': allowed: flow, nodegroup, temporal, timeshift, spatial, auto");
  EXPECT_EQ(Fault([](Options& o) { o.claims = "none"; }),
            "--claims 'none': allowed: contract, steps, curve");
  EXPECT_EQ(Fault([](Options& o) { o.lanes = 0; }), "--lanes 0: allowed: 1 to 64");
  EXPECT_EQ(Fault([](Options& o) { o.lend = "never"; }), "--lend 'never': allowed: demand, eager");
  EXPECT_EQ(Fault([](Options& o) { o.credit = "maybe"; }), "--credit 'maybe': allowed: on, off");
  EXPECT_EQ(Fault([](Options& o) { o.credit_us = 99; }), "--credit-us 99: allowed: 100 to 1000000");
  EXPECT_EQ(Fault([](Options& o) { o.idle_exit_s = -1; }),
            "--idle-exit -1: allowed: 0 to 1000000 seconds");
  EXPECT_EQ(Fault([](Options& o) { o.lease_wait_s = 2e6; }),
            "--lease-wait 2000000: allowed: 0 to 1000000 seconds");
  EXPECT_EQ(Fault([](Options& o) { o.patience_s = -2; }),
            "--patience -2: allowed: 0 to 1000000 seconds");
}

TEST(Options, AllFaultsAreListedAtOnce) {
  Options options = Good();
  options.policy = "magic";
  options.lanes = 65;
  const std::string message = Validate(options).message();
  EXPECT_NE(message.find("--policy"), std::string::npos);
  EXPECT_NE(message.find("--lanes 65"), std::string::npos);
}

// The path of a job's socket below the longest folder still fits a socket's address (108 bytes).
TEST(Options, TheLongestRuntimeDirIsAllowed) {
  Options options = Good();
  options.runtime_dir = "/" + std::string(78, 'x');
  EXPECT_TRUE(Validate(options).ok());
  options.runtime_dir += "x";
  EXPECT_FALSE(Validate(options).ok());
}

TEST(PlanPool, TakesWholeHandles) {
  Options options = Good();
  options.pool_bytes = 100 * kMiB;
  options.handle_bytes = 32 * kMiB;
  const auto plan = PlanPool(options, kGiB, 2 * kMiB);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->bytes, 96 * kMiB);
  EXPECT_EQ(plan->handles, 3u);
  EXPECT_EQ(plan->units, 12u);
}

TEST(PlanPool, LeavesAReserve) {
  EXPECT_EQ(PlanPool(Good(), kGiB, 2 * kMiB)->bytes, 896 * kMiB);
  EXPECT_EQ(PlanPool(Good(), 80 * kGiB, 2 * kMiB)->bytes, 78 * kGiB);
  Options options = Good();
  options.reserve_bytes = 25 * kMiB;
  EXPECT_EQ(PlanPool(options, kGiB, 2 * kMiB)->bytes, 992 * kMiB);
}

TEST(SizeUnits, AUnitIsAHandleAndLargePoolsHaveLargerOnes) {
  const auto unit_of = [](uint64_t device_bytes, std::optional<uint64_t> pool_bytes) {
    Options options = Good();
    options.unit_by_pool = true;
    options.pool_bytes = pool_bytes;
    SizeUnits(device_bytes, &options);
    EXPECT_EQ(options.handle_bytes, options.unit_bytes);
    return options.unit_bytes;
  };
  EXPECT_EQ(unit_of(24 * kGiB, {}), 8 * kMiB);
  EXPECT_EQ(unit_of(48 * kGiB, {}), 8 * kMiB);
  EXPECT_EQ(unit_of(80 * kGiB, {}), 16 * kMiB);
  EXPECT_EQ(unit_of(141 * kGiB, {}), 32 * kMiB);
  EXPECT_EQ(unit_of(141 * kGiB, 16 * kGiB), 8 * kMiB);
  Options given = Good();
  given.unit_bytes = 4 * kMiB;
  SizeUnits(141 * kGiB, &given);
  EXPECT_EQ(given.unit_bytes, 4 * kMiB) << "somebody said so";
}

TEST(PlanPool, FaultsNameTheGpusSize) {
  Options options = Good();
  options.pool_bytes = 2 * kGiB;
  EXPECT_EQ(PlanPool(options, kGiB, 2 * kMiB).status().message(),
            "--pool 2.0 GiB: allowed: at most the GPU's memory (1.0 GiB)");
  options = Good();
  options.handle_bytes = 24 * kMiB;
  EXPECT_EQ(PlanPool(options, kGiB, 16 * kMiB).status().message(),
            "--handle 24.0 MiB: allowed: a multiple of the GPU's granularity (16.0 MiB)");
  options = Good();
  options.reserve_bytes = kGiB;
  EXPECT_EQ(PlanPool(options, kGiB, 2 * kMiB).status().message(),
            "--reserve 1.0 GiB: allowed: less than the GPU's memory (1.0 GiB)");
}

TEST(PlanHostMemory, IsThePoolsSizeButAQuarterOfTheMachineAtMost) {
  EXPECT_EQ(*PlanHostMemory(Good(), 10 * kGiB, 64 * kGiB), 10 * kGiB);
  EXPECT_EQ(*PlanHostMemory(Good(), 78 * kGiB, 64 * kGiB), 16 * kGiB);
  Options options = Good();
  options.host_memory_bytes = 40 * kGiB;
  EXPECT_EQ(*PlanHostMemory(options, 10 * kGiB, 64 * kGiB), 40 * kGiB);
  options.host_memory_bytes = 0;
  EXPECT_TRUE(Validate(options).ok());
  EXPECT_EQ(*PlanHostMemory(options, 10 * kGiB, 64 * kGiB), 0u);
  options.host_memory_bytes = 65 * kGiB;
  EXPECT_EQ(PlanHostMemory(options, 10 * kGiB, 64 * kGiB).status().message(),
            "--host-memory 65.0 GiB: allowed: at most the machine's memory (64.0 GiB)");
}

}  // namespace
}  // namespace sluice::config
