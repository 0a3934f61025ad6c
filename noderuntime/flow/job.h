// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "noderuntime/flow/held_by_gate.h"
#include "noderuntime/flow/iteration_times.h"
#include "noderuntime/flow/ring_reader.h"
#include "noderuntime/flow/types.h"
#include "noderuntime/session/token_bucket.h"
#include "scheduler/profile/gates.h"
#include "scheduler/profile/iteration_recorder.h"
#include "scheduler/profile/profile.h"

namespace sluice::flow {

/// Units on their way back: they stay held until every term is reached.
struct PendingRelease {
  scheduler::ReleaseId id = 0;
  std::vector<protocol::FenceTerm> fence;
  size_t reached = 0;  // so many of its terms are
  Extents extents;
};

/// The request that the client waits for. The scheduling part stands in Flow's list of requests.
struct PendingAnswer {
  uint32_t seq = 0;
  uint32_t gate = protocol::kNoGate;
  uint32_t profile = 0;
  uint64_t iteration = 0;
};

/// The profile that stands in the daemon page.
struct Published {
  uint32_t id = 0;
  scheduler::Profile profile;
  scheduler::CyclePlan plan;
  uint64_t launches_before = 0;  // how many the job had launched when it was published
  std::vector<Units> ahead;      // [gate]: scheduler::AheadOf
  /// Which amounts stand in the page; none: a daemon that takes over does not know.
  struct Told {
    bool whole = false;
    uint64_t credit_ns = 0;
    bool operator==(const Told&) const = default;
  };
  std::optional<Told> told;
};

/// What is being done to a job that left its claim (I5), or waits at its trough.
enum class Moving : uint8_t {
  kNot,
  kAsked,      // its client was asked to stand still
  kLeaving,    // and does; its units are copied to host memory
  kAway,       // they are somebody else's
  kReturning,  // and its own again: they are copied back
};

/// What the flow knows of a job with a live session, beside the ledger.
struct FlowJob {
  explicit FlowJob(const JobSpec& wanted, const JobPages& shared,
                   const scheduler::ProfilerOptions& o)
      : spec(wanted), pages(shared), ring(shared), profiler(o) {
    if (spec.observed) recorder.emplace();
  }

  JobSpec spec;
  /// How many records are read, however fast they come: a GPU takes fewer launches, and a ring
  /// holds what comes in a while in which nobody looks.
  static constexpr uint64_t kRecordsPerSecond = 2'000'000;
  static constexpr uint64_t kRecordBurst = 32'768;

  JobPages pages;
  RingReader ring;
  session::TokenBucket records{kRecordBurst, kRecordsPerSecond, 0};
  scheduler::Profiler profiler;
  uint64_t profiler_generation = 0;
  std::optional<scheduler::IterationRecorder> recorder;

  bool admitted = false;  // known to the ledger
  std::string refusal;    // not empty: it never will be
  uint64_t waits_since_ns =
      0;  // since it asked to begin or for what it waits for now; 0: it does not wait
  bool noticed = false;
  uint64_t logged_ticket = 0;      // of the last request whose wait is in the log
  uint32_t logged_reasons = 0;     // of that wait: bit r for WaitReason r
  uint64_t deviation_told_ns = 0;  // when the program was last told that it left its iteration
  std::optional<PendingAnswer> answer;
  Moving moving = Moving::kNot;
  uint64_t moving_since_ns = 0;  // kAsked, kAway
  uint32_t late_quiets = 0;      // it was told before it had answered Quiesce, and will yet
  bool stays = false;            // it could not be made quiet, or not be copied, for this request
  uint64_t stays_until_ns = 0;   // the same at its trough: it is not asked again before
  uint32_t returns = 0;          // from host memory, for this request
  uint64_t evictions = 0;        // that came to an end

  std::vector<PendingRelease> releases;
  size_t next_fence = 0;  // of them, that is looked at next
  scheduler::ReleaseId next_release = 1;
  uint64_t epoch = 0;

  std::optional<Published> published;
  IterationTimes times;
  uint64_t iteration = 0;    // as the client counts: the one whose gate 0 was opened last
  uint32_t passed_gate = 0;  // in it, as far as its records tell
  uint32_t next_profile = 1;
  /// The profile is of an earlier daemon, and the profiler has not found its cycle again: what it
  /// finds meanwhile (a loop inside) is no news about the profile. The client still compares.
  bool awaits_cycle = false;
  /// Frames about a profile that is gone, since one was published: a few are in flight, many are a
  /// flood.
  uint64_t stray_frames = 0;

  bool collectives = false;  // its kernels wait for other GPUs'

  std::map<uint32_t, uint64_t> counted;  // bytes by counted family

  Units use = 0;                 // most it held leased in this iteration
  Units measured_use = 0;        // the same while it was measured
  std::deque<Units> past_use;    // of the latest iterations behind gates
  HeldByGate held;               // all that it held, by gate
  Units largest_run = 0;         // longest run it asked for since it was measured
  Units trough_held = 0;         // most it held at a drained trough
  bool gated_iteration = false;  // this one began at a gate 0

  bool pressure = false;
  uint32_t flags = 0;
  bool stood_still = false;   // in an iteration, while others waited
  uint64_t last_sign_ns = 0;  // it computed, or was granted more than it ever held
  uint64_t last_work_ns = 0;  // it computed: launch or copy
  uint64_t answered_ns = 0;   // it was granted what it waited for
  uint64_t launches = 0;
  uint64_t copies = 0;
  uint64_t leases = 0;               // asked for
  uint64_t waited_for_since_ns = 0;  // since somebody waits for its profile; 0: nobody does
  uint64_t waiting_launches = 0;     // launched since then
};

}  // namespace sluice::flow
