// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <chrono>
#include <random>

#include "common/bytes.h"
#include "noderuntime/cli/trainer_output.h"
#include "tests/support/trainer.h"

namespace sluice::testing {
namespace {

using scheduler::EventKind;
using scheduler::Record;

constexpr uint64_t kContext = 4 * kMiB;  // of the simulated GPU's default machine
constexpr uint64_t kHandle = 2 * kMiB;
constexpr int kWaitMs = 120'000;
constexpr uint64_t kSeed = 20261121;
/// Lines of the log: less than an iteration's while memory is lent, some iterations' while it is
/// not.
constexpr uint64_t kLines = 12;

/// How often the daemon is killed: 5 unless SLUICE_RESTARTS says otherwise (the soak asks for 50).
unsigned Restarts() {
  const char* text = ::getenv("SLUICE_RESTARTS");
  return text == nullptr ? 5 : static_cast<unsigned>(std::stoul(text));
}

/// Iterations of the faster trainer between two kills.
constexpr uint64_t kStride = 9;
constexpr uint64_t kSlack = kLines / 2;
/// Until both have a profile, mostly; nothing depends on it.
constexpr uint64_t kMeasured = 30;

std::vector<TrainerRun> Runs() {
  const uint64_t iterations = kMeasured + (kStride + kSlack) * (Restarts() + 1);
  return {{"small-a", 1, iterations, {}}, {"small-b", 2, iterations, {}}};
}

/// Of the one that is ahead: both live until it ends.
size_t Losses(cli::JobGroup& group) {
  size_t most = 0;
  for (const cli::JobProcess& job : group.jobs()) {
    most = std::max(most, cli::CountLosses(job.out()));
  }
  return most;
}

// Two trainers whose peaks do not fit together, and a daemon that is killed again and again while
// they compute and lend. Each daemon's log, which begins with what it took over, stands up to the
// audit by itself.
TEST(Restart, AKilledDaemonCostsNobodyAnything) {
  const std::vector<TrainerRun> runs = Runs();
  std::vector<TrainerResult> solo;
  uint64_t sum = 0;
  for (const TrainerRun& run : runs) {
    solo.push_back(RunAlone(run));
    sum += solo.back().peak_bytes;
  }
  const uint64_t pool = sum * 645 / 1000 / kHandle * kHandle;
  BedOptions options = TrainerBed();
  options.keeper = true;
  options.pool = std::to_string(pool);
  options.gpu_memory = std::to_string(pool + (runs.size() + 2) * kContext);
  TestBed bed(options);
  cli::JobGroup group;
  for (const TrainerRun& run : runs) {
    group.Add(bed.Start({.label = run.Label(), .command = run.Command()}));
  }
  unsigned restarts = 0;
  std::mt19937_64 random(kSeed);
  Finish(group, kWaitMs + 10'000 * static_cast<int>(Restarts()), [&](cli::JobGroup& running) {
    if (restarts == Restarts() || Losses(running) < kMeasured + restarts * (kStride + kSlack))
      return;
    ++restarts;
    // Not where an iteration ends, but anywhere between two lines of the ledger.
    const size_t until = bed.log().Read().size() + random() % kLines;
    EXPECT_TRUE(bed.log().Await(
        [until](const std::vector<Record>& records) { return records.size() >= until; }, kWaitMs));
    bed.RestartDaemon();
  });
  EXPECT_EQ(restarts, Restarts());
  for (size_t i = 0; i < runs.size(); ++i) ExpectSameLosses(solo[i], group.jobs()[i]);

  // Nothing is lost: after the last job's end the whole pool is free.
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(kWaitMs);
  nlohmann::json status = bed.Status();
  while (!status.at("jobs").empty() && std::chrono::steady_clock::now() < deadline) {
    status = bed.Status();
  }
  EXPECT_EQ(status.at("free_bytes"), status.at("pool_bytes")) << status.dump(1);
  bed.StopDaemon();
  // The keeper and the daemon's executor are on their way out.
  while (bed.GpuStats().memory_used > 0 && std::chrono::steady_clock::now() < deadline) {
  }
  EXPECT_EQ(bed.GpuStats().memory_used, 0u);
  EXPECT_EQ(bed.GpuStats().oracle_violations, 0u);

  uint64_t lent = 0;
  size_t gates = 0;
  for (const auto& log : bed.logs()) {
    const scheduler::AuditReport report = log->Audit();
    EXPECT_TRUE(report.ok()) << log->path() << "\n" << Violations(report);
    lent += report.lent_bytes_within_iterations;
    if (log == bed.logs().front()) continue;
    const std::vector<Record>& records = log->Read();
    gates +=
        static_cast<size_t>(std::count_if(records.begin(), records.end(), [](const Record& record) {
          return record.event == EventKind::kGate && record.profiled;
        }));
    EXPECT_EQ(
        std::count_if(records.begin(), records.end(),
                      [](const Record& record) { return record.event == EventKind::kRestore; }),
        2)
        << log->path();
  }
  EXPECT_GT(lent, 0u);
  EXPECT_GT(gates, Restarts()) << "nobody went on behind gates after a restart";
}

}  // namespace
}  // namespace sluice::testing
