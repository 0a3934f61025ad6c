// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "common/machine.h"
#include "common/status.h"
#include "noderuntime/cli/offline/simulate_options.h"
#include "scheduler/simulate/simulate.h"

/// Pairs of recorded iterations, once as processes on the simulated GPU under sluice-noded and once
/// in scheduler/simulate: how good is the model? Times are simulated nanoseconds on both sides.
namespace sluice::bench {

inline constexpr uint64_t kReplayUnit = uint64_t{8} << 20;  // a node's lease unit

struct ReplayModel {
  std::string name;
  uint64_t batch = 0;
  std::string title() const { return name + ":" + std::to_string(batch); }
  std::string file;                        // its trace
  scheduler::simulate::Workload workload;  // with the gates of a live node
};

struct ReplayPair {
  std::array<const ReplayModel*, 2> jobs;
  scheduler::Units least_pool = 0;  // in which they can take turns
  scheduler::Units both_peaks = 0;
  scheduler::Units pool_units = 0;
  std::string name() const { return jobs[0]->title() + " + " + jobs[1]->title(); }
};

/// The machine of both sides, as text for the simulated GPU.
struct ReplayMachine {
  std::string text;
  Machine machine;
};
/// `time_scale`: real seconds per simulated one.
Result<ReplayMachine> MakeReplayMachine(double time_scale);

/// What one of the two jobs of a pair repeats, as `sluice simulate --placing` has it. `placing`:
/// ReplaySetting. An error names the file.
Result<ReplayModel> MakeReplayModel(const cli::TracedJob& job, const Machine& machine,
                                    scheduler::Placing placing);
/// The six recorded models, at batches whose iterations last about as long.
Result<std::vector<ReplayModel>> MakeReplayModels(const Machine& machine,
                                                  scheduler::Placing placing);

/// Its pool is still to be chosen.
ReplayPair MakeReplayPair(const ReplayModel& first, const ReplayModel& second);
/// Twelve of the six models.
std::vector<ReplayPair> MakeReplayPairs(const std::vector<ReplayModel>& models);

/// What both sides are told to do.
struct ReplaySetting {
  std::string policy;
  scheduler::Claims claims = scheduler::Claims::kSteps;
  /// Of the processes: in pieces, a unit of the pool is a handle of the driver, so that blocks are
  /// put together of units that lie apart (docs/adr/0031); else a block is a run of the pool. The
  /// model knows no places, only what jobs ask for because of them.
  scheduler::Placing placing = scheduler::Placing::kPieces;
  /// Where the event logs of both sides are kept, as sluice check-log reads them: this and
  /// ".processes.jsonl" or ".model.jsonl". Empty: nowhere.
  std::string logs;
};

/// One job of a run, in the stretch in which both were in their gated iterations; of the model
/// `most_held` is what `sluice simulate` says of it, of all of the run.
struct ReplayedJob {
  uint32_t iterations = 0;
  double mean_ms = 0;
  double median_ms = 0;
  /// What it was granted and has not released; with what its GPU has not passed yet; and all that
  /// counts as held, also spare units.
  scheduler::Units most_granted = 0;
  scheduler::Units most_used = 0;
  scheduler::Units most_held = 0;
};
struct Replayed {
  std::array<ReplayedJob, 2> jobs;
  scheduler::Units most_held = 0;  // by both at once
};

/// Fills in what was granted, used and held between two times of an event log, of the jobs 1 and 2,
/// by the replay that judges event logs: it shares nothing with the ledger of either side.
/// kInvalidArgument: no event log.
Status MeasureHeld(const std::vector<scheduler::Record>& records, uint64_t from, uint64_t to,
                   Replayed* result);

/// In the model.
Result<Replayed> SimulatePair(const ReplayPair& pair, const Machine& machine,
                              const ReplaySetting& setting);

/// As processes, each with as many iterations as last for `seconds` of GPU time by `expected`, and
/// for some of the slower job. kResourceExhausted: one of them was refused memory.
Result<Replayed> RunPair(const ReplayPair& pair, const ReplayMachine& machine,
                         const ReplaySetting& setting, const Replayed& expected, double seconds);

}  // namespace sluice::bench
