// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <gtest/gtest.h>
#include <sys/types.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/test_bed.h"

namespace sluice::testing {

/// The bound on every wait of tests that kill the daemon; it only ends a failing test.
inline constexpr int kRestartWaitMs = 120'000;

/// Until `done` holds for the daemon's answer; the answers are round trips through its loop.
template <typename Done>
nlohmann::json AwaitStatus(TestBed& bed, Done done) {
  const auto deadline =
      std::chrono::steady_clock::now() + std::chrono::milliseconds(kRestartWaitMs);
  nlohmann::json status = bed.Status();
  while (!done(status) && std::chrono::steady_clock::now() < deadline) status = bed.Status();
  EXPECT_TRUE(done(status)) << status.dump(1);
  return status;
}
inline bool NoJobs(const nlohmann::json& status) { return status.at("jobs").empty(); }

/// A pool of 16 MiB with a keeper: 8 handles.
BedOptions SmallBed();

/// A job that holds 6 MiB until its input ends; returns once it does.
cli::JobProcess StartHolding(TestBed& bed, InputPipe& input, std::vector<std::string> extra = {});
/// The same with a forked child that holds the driver's files until then; the job itself is killed
/// as soon as it holds everything.
void RunUntilHoldingAndKill(TestBed& bed, InputPipe& input);
/// That job is gone, and its memory in quarantine.
bool Quarantined(const nlohmann::json& status);

/// The keeper of this folder; 0: none listens there.
pid_t KeeperOf(const TestBed& bed);
/// The daemon's keeper, when it has everything (by the daemon's status); 0: there is none.
pid_t KeeperIn(const nlohmann::json& status);
/// Until another keeper than `last` has everything; returns it.
pid_t AwaitKeeper(TestBed& bed, pid_t last = 0);
/// Connects to it as a daemon does.
UniqueFd ConnectToKeeper(const TestBed& bed);

}  // namespace sluice::testing
