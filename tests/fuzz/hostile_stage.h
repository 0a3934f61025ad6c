// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tests/fuzz/daemon_world.h"
#include "tests/fuzz/hostile_frames.h"

namespace sluice::fuzz {

/// Where a job is in its life.
enum class State : uint8_t {
  kWaiting,    // to begin
  kMeasured,   // it has begun, and has no profile yet
  kParked,     // at its trough, and its gate is shut
  kInside,     // its iteration
  kAsked,      // to stand still
  kLeaving,    // what it has is copied to host memory
  kAway,       // and is there
  kReturning,  // and is copied back
  kResting,    // it said goodbye, and something outside the pool is left of it
  kDying,      // it hung up, and its process lives
};
inline constexpr size_t kStates = 10;
const char* NameOf(State state);

/// A daemon with a hostile job in one state, a neighbour with a profile that iterates and wants
/// what it was promised, and DaemonWorld's honest job. Both check that the bytes in what they hold
/// are theirs.
class HostileStage {
 public:
  enum class Reaction : uint8_t { kNone, kAnswered, kClosed };

  HostileStage(const std::string& dir, State state, const flow::FaultPlan& faults);

  /// Where the hostile job is; nullopt: nowhere.
  std::optional<State> Where() const;
  /// Brings it to the state, if it is not there.
  void Bring();
  /// Sends on its session, or on a connection of its own where that is over or `aside`. Everybody
  /// then looks at what is theirs.
  Reaction Send(const std::vector<uint8_t>& frame, bool aside);
  /// Its client raises a mark.
  void Mark(uint32_t slot, uint64_t value);
  /// Whatever is moved goes on: out, and back when the neighbour has given way.
  void PlayOut();
  /// The honest job gives a unit back and asks for it again.
  void HonestStep();
  Sight Look() const;
  /// Everybody leaves; the event log is audited.
  void End();
  const std::optional<std::string>& violation() const { return world_.violation(); }

 private:
  /// A client that keeps to the protocol, as far as it is driven here.
  struct Actor {
    size_t place = 0;  // among the world's jobs
    flow::JobId id = scheduler::kNoJob;
    std::optional<FuzzClient> client;
    scheduler::Extents book;  // what it was granted and has not given back
    scheduler::Extents base;
    uint32_t seq = 0;  // of its latest request
    bool waits = false;
    bool denied = false;
    uint32_t profile = 0;
    uint64_t iteration = 0;
    uint32_t session = 0;
  };

  void Turn();
  void Drain(Actor* actor);
  bool Await(const std::function<bool()>& happens, const char* what);
  const scheduler::Job* Known(const Actor& actor) const;
  scheduler::Extents Leased(const Actor& actor) const;
  scheduler::Units Rest(const Actor& actor) const;

  void Open(Actor* actor);
  void Ask(Actor* actor, std::vector<uint8_t> frame);
  void Lease(Actor* actor, scheduler::Units units);
  void GateZero(Actor* actor);
  void Measure(Actor* actor);
  void ToTrough(Actor* actor);
  void Quiet();
  void EndCopies();

  void SetUpNeighbour();
  void Reset();
  void SettleNeighbour();
  void LetBegin();
  void GoInside();
  void Crowd();
  bool Alone() const { return state_ == State::kWaiting; }

  void Paint(flow::JobId job, const scheduler::Extents& extents);
  void LookAtBytes();
  std::byte* At(scheduler::Units unit);

  const State state_;
  DaemonWorld world_;
  Actor neighbour_;
  Actor hostile_;
  size_t answers_ = 0;  // to the hostile one
  uint64_t resets_ = 0;
  bool broke_its_word_ = false;  // the hostile one, since it began
  bool met_ = false;             // its process has begun
};

}  // namespace sluice::fuzz
