// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "tests/fuzz/hostile_stage.h"

#include <algorithm>
#include <cstring>

#include "tests/fuzz/frame_bytes.h"

namespace sluice::fuzz {

using flow::Moving;
using protocol::FrameType;
using scheduler::Phase;
using scheduler::Units;
using scheduler::UnitState;

namespace {

// Of 64 units the honest job may have 8. Both others need 34 at their peaks, and the hostile one
// may ask for more than there is then.
constexpr Units kPool = 64;
constexpr Units kLimit = 48;
constexpr Units kBase = 2;
constexpr uint32_t kLayers = 8;
constexpr Units kBlock = 4;
constexpr Units kPeak = kBase + kLayers * kBlock;
constexpr uint64_t kUnit = DaemonWorld::kUnit;
constexpr uint64_t kMs = 1'000'000;

DaemonWorld::Options WorldFor(State state) {
  DaemonWorld::Options options;
  options.pool_units = kPool;
  // One at a time, so that a gate stays shut.
  options.policy = state == State::kParked ? "temporal" : "flow";
  options.claims = "contract";
  options.fuzzers_jobs = false;
  return options;
}

bool Moves(State state) {
  return state == State::kAsked || state == State::kLeaving || state == State::kAway ||
         state == State::kReturning;
}

}  // namespace

const char* NameOf(State state) {
  constexpr const char* kNames[kStates] = {"waiting", "measured", "parked",    "inside",  "asked",
                                           "leaving", "away",     "returning", "resting", "dying"};
  return kNames[static_cast<size_t>(state)];
}

HostileStage::HostileStage(const std::string& dir, State state, const flow::FaultPlan& faults)
    : state_(state), world_(dir, faults, WorldFor(state)) {
  world_.gpu().holds_copies = true;
  for (Actor* actor : {&neighbour_, &hostile_}) {
    actor->place = world_.jobs();
    actor->id = static_cast<flow::JobId>(actor->place + 2);
    world_.Register(kLimit * kUnit, kBase * kUnit, 0);
    if (world_.jobs() == actor->place) world_.Violate("a job is not registered");
  }
  SetUpNeighbour();
}

void HostileStage::SetUpNeighbour() {
  Open(&neighbour_);
  // The honest one shows no iteration: nobody waits for it for ever.
  for (int i = 0; i < 4; ++i) world_.Pass(6'000 * kMs);
  if (violation().has_value()) return;
  if (!Alone()) {
    Measure(&neighbour_);
    return ToTrough(&neighbour_);
  }
  Await([this] { return Known(neighbour_) != nullptr && Known(neighbour_)->past_gate(); },
        "the neighbour does not begin");
  Lease(&neighbour_, kBase);
  SettleNeighbour();
}

const scheduler::Job* HostileStage::Known(const Actor& actor) const {
  return world_.flow().ledger().Find(actor.id);
}

scheduler::Extents HostileStage::Leased(const Actor& actor) const {
  return world_.flow().ledger().map().Held(actor.id, UnitState::kLeased);
}

/// Of what it had when it was measured: one that uses more claims more the next time.
Units HostileStage::Rest(const Actor& actor) const {
  return kPeak - std::min(kPeak, TotalUnits(Leased(actor)));
}

std::optional<State> HostileStage::Where() const {
  const flow::FlowJob* job = world_.flow().Find(hostile_.id);
  const scheduler::Job* known = Known(hostile_);
  if (job == nullptr) {
    if (world_.flow().Rests(hostile_.id)) return State::kResting;
    if (known != nullptr && known->phase == Phase::kDying) return State::kDying;
    return std::nullopt;
  }
  switch (job->moving) {
    case Moving::kAsked:
      return State::kAsked;
    case Moving::kLeaving:
      return State::kLeaving;
    case Moving::kAway:
      return State::kAway;
    case Moving::kReturning:
      return State::kReturning;
    case Moving::kNot:
      break;
  }
  if (known == nullptr || known->phase == Phase::kWaiting) return State::kWaiting;
  if (known->phase == Phase::kUnprofiled) return State::kMeasured;
  if (known->phase == Phase::kParked) return State::kParked;
  return known->phase == Phase::kRunning ? std::optional(State::kInside) : std::nullopt;
}

void HostileStage::Turn() {
  world_.Turn();
  // No decision can prevent that it keeps more at its trough than it asked for (I2), or leaves its
  // cycle: what others were promised beside it may be gone then.
  const scheduler::Job* known = Known(hostile_);
  const bool keeps =
      known != nullptr && known->phase == Phase::kParked && known->held() > known->request;
  const bool left = known != nullptr && known->phase == Phase::kUnprofiled && hostile_.profile != 0;
  broke_its_word_ = broke_its_word_ || keeps || left;
  Drain(&neighbour_);
  Drain(&hostile_);
}

void HostileStage::Drain(Actor* actor) {
  if (!actor->client.has_value()) return;
  while (const std::optional<Answer> answer = actor->client->Receive()) {
    if (actor == &hostile_) ++answers_;
    if (answer->type == FrameType::kWelcome) actor->session = answer->session;
    if (answer->type == FrameType::kGrant) {
      scheduler::Extents granted;
      for (const protocol::Extent& extent : answer->extents) {
        granted.push_back({extent.offset, extent.length});
      }
      actor->book = scheduler::Union(actor->book, granted);
      // What the hostile one was granted it may have given back without our knowing.
      Paint(actor->id, scheduler::Intersect(granted, Leased(*actor)));
    }
    if (answer->seq != actor->seq) continue;
    const bool denied = answer->type == FrameType::kDeny;
    const bool granted = answer->type == FrameType::kGrant && answer->last;
    if (denied || granted || answer->type == FrameType::kCharged) actor->waits = false;
    actor->denied = actor->denied || denied;
  }
}

bool HostileStage::Await(const std::function<bool()>& happens, const char* what) {
  for (int i = 0; i < 100 && !violation().has_value(); ++i) {
    if (happens()) return true;
    Turn();
    if (i > 4) world_.Pass(kMs);
  }
  if (!violation().has_value() && happens()) return true;
  std::string why = what;
  for (const Actor* actor : {&neighbour_, &hostile_}) {
    const std::string wait = world_.flow().WhyWaiting(actor->id);
    if (!wait.empty()) why += "; job " + std::to_string(actor->id) + ": " + wait;
    if (actor->denied) why += "; job " + std::to_string(actor->id) + " was denied";
    if (const scheduler::Job* known = Known(*actor)) {
      why += "; job " + std::to_string(actor->id) + " in phase " +
             std::to_string(static_cast<int>(known->phase)) + " leased " +
             std::to_string(known->leased) + " spare " + std::to_string(known->spare) + " claim " +
             std::to_string(known->terms.claim);
    }
  }
  world_.Violate(why);
  return false;
}

void HostileStage::Open(Actor* actor) {
  if (violation().has_value()) return;
  const size_t place = actor->place;
  const flow::JobId id = actor->id;
  *actor = Actor();
  actor->place = place;
  actor->id = id;
  if (actor == &hostile_) {
    DaemonWorld::BeginProcess();
    met_ = true;
  }
  actor->client.emplace(world_.path(place));
  actor->client->SendHello(world_.device());
  if (!Await([actor] { return actor->client->mark() != nullptr; }, "a job gets no session")) return;
  actor->client->SendFrame(protocol::Ready{}, FrameType::kReady);
  Await([&] { return world_.flow().Find(id) != nullptr; }, "a session does not begin");
}

void HostileStage::Ask(Actor* actor, std::vector<uint8_t> frame) {
  if (violation().has_value()) return;
  ++actor->seq;
  std::memcpy(frame.data() + offsetof(protocol::Header, seq), &actor->seq, sizeof actor->seq);
  actor->waits = true;
  actor->denied = false;
  if (!actor->client->Send(frame)) world_.Violate("a socket takes no frame");
  Turn();
  Turn();
}

void HostileStage::Lease(Actor* actor, Units units) {
  protocol::Lease frame = {};
  frame.units = units;
  frame.contiguous = 1;
  Ask(actor, AsBytes(frame, FrameType::kLease));
}

void HostileStage::GateZero(Actor* actor) {
  protocol::Gate frame = {};
  frame.profile = actor->profile;
  frame.iteration = ++actor->iteration;
  frame.held_units = TotalUnits(actor->book);
  frame.drained = 1;
  Ask(actor, AsBytes(frame, FrameType::kGate));
}

/// Iterates until its cycle is published. It has its base and what its layers need then.
void HostileStage::Measure(Actor* actor) {
  Lease(actor, kBase);
  const auto answered = [actor] { return !actor->waits && !actor->denied; };
  if (!Await(answered, "a job without a profile does not begin")) return;
  actor->base = actor->book;
  actor->client->Push(protocol::OpKind::kAlloc, kBase * kUnit);
  Lease(actor, kPeak - kBase);
  if (!Await(answered, "a job without a profile gets nothing")) return;
  for (int i = 0; i < 64 && actor->profile == 0 && !violation().has_value(); ++i) {
    actor->client->Iterate(kLayers, kBlock * kUnit);
    world_.Pass(5 * kMs);
    actor->profile = actor->client->profile();
  }
  if (actor->profile == 0) world_.Violate("a cycle is not found");
}

/// Gives back what is beside its base, and stands at gate 0. Whether that opens is another matter.
void HostileStage::ToTrough(Actor* actor) {
  if (violation().has_value()) return;
  std::vector<protocol::Extent> rest;
  for (const auto& extent : scheduler::Subtract(actor->book, actor->base)) {
    rest.push_back({extent.offset, extent.length});
  }
  actor->book = actor->base;
  if (!rest.empty()) actor->client->SendRelease(rest, {});
  actor->client->Iterate(kLayers, kBlock * kUnit);
  GateZero(actor);
}

/// Its process ends, and the neighbour comes to the beginning of its iteration with its base.
void HostileStage::Reset() {
  hostile_.client.reset();
  Turn();
  EndCopies();
  if (met_) world_.EndProcess();
  met_ = false;
  SettleNeighbour();
  broke_its_word_ = false;
  if (++resets_ % 4 == 0) world_.HonestTurn();
  Drain(&neighbour_);
}

void HostileStage::SettleNeighbour() {
  if (violation().has_value()) return;
  if (Alone()) {
    // It computes, so nobody takes it for one without an iteration.
    neighbour_.client->Push(protocol::OpKind::kLaunch, neighbour_.iteration++);
    return;
  }
  const auto answered = [this] { return !neighbour_.waits; };
  if (!Await(answered, "the neighbour waits for what it was promised")) return;
  if (neighbour_.denied && !broke_its_word_)
    return world_.Violate("the neighbour is denied what it was promised");
  LookAtBytes();
  ToTrough(&neighbour_);
  Await(answered, "the neighbour's gate stays shut");
}

/// The neighbour lets the newcomer begin: at its trough, where its gate is shut until the newcomer
/// has a profile.
void HostileStage::LetBegin() {
  const auto begun = [this] {
    const scheduler::Job* known = Known(hostile_);
    return known != nullptr && known->past_gate();
  };
  // A newcomer is overtaken a few times.
  for (int i = 0; i < 8 && !(begun() && neighbour_.waits) && !violation().has_value(); ++i) {
    if (!neighbour_.waits) ToTrough(&neighbour_);
    for (int turn = 0; turn < 4; ++turn) Turn();
  }
  Await(begun, "a newcomer does not begin");
}

void HostileStage::GoInside() {
  Open(&hostile_);
  LetBegin();
  Measure(&hostile_);
  ToTrough(&hostile_);
  // Each in its turn, until it is not the hostile one's.
  for (int i = 0; i < 4 && state_ == State::kParked && !violation().has_value(); ++i) {
    for (int turn = 0; turn < 4; ++turn) Turn();
    if (Where() == State::kParked) return;
    if (!neighbour_.waits) ToTrough(&neighbour_);
    ToTrough(&hostile_);
  }
  if (state_ == State::kParked) return;
  Await([this] { return Where() == State::kInside && !hostile_.waits && !neighbour_.waits; },
        "a gate stays shut");
}

/// The hostile one has its whole claim and asks for more, and the neighbour waits for the rest of
/// its own.
void HostileStage::Crowd() {
  constexpr Units kLeft = 9;
  Lease(&hostile_, Rest(hostile_));
  if (!Await([this] { return !hostile_.waits; }, "no more than the claim, and not granted")) return;
  // It may have units to spare, which are lent to it first.
  for (int i = 0; i < 4 && world_.flow().ledger().free() > kLeft && !violation(); ++i) {
    Lease(&neighbour_, world_.flow().ledger().free() - kLeft);
    if (!Await([this] { return !neighbour_.waits; }, "the neighbour's first lease waits")) return;
  }
  Lease(&neighbour_, Rest(neighbour_));
  if (!neighbour_.waits) return world_.Violate("there is room for everybody");
  if (state_ == State::kInside) return;
  Lease(&hostile_, kLimit - Known(hostile_)->leased);
  Await([this] { return Where() == State::kAsked; }, "nobody is asked to stand still");
}

void HostileStage::Quiet() {
  protocol::Quiet frame = {};
  if (violation().has_value()) return;
  hostile_.client->SendFrame(frame, FrameType::kQuiet, hostile_.seq);
  Await([this] { return Where() == State::kLeaving; }, "nothing leaves");
}

void HostileStage::EndCopies() {
  while (world_.gpu().under_way() > 0 && !violation().has_value()) {
    world_.gpu().EndOldest();
    Turn();
  }
}

void HostileStage::Bring() {
  if (violation().has_value() || Where() == state_) return;
  Reset();
  if (violation().has_value()) return;
  switch (state_) {
    case State::kWaiting:
      Open(&hostile_);
      break;
    case State::kMeasured:
      Open(&hostile_);
      LetBegin();
      Lease(&hostile_, 3);
      Await([this] { return !hostile_.waits; }, "a newcomer gets nothing");
      break;
    case State::kResting: {
      Open(&hostile_);
      protocol::Charge frame = {};
      frame.family = static_cast<uint32_t>(protocol::Family::kArray);
      frame.bytes = 2 * kUnit;
      Ask(&hostile_, AsBytes(frame, FrameType::kCharge));
      if (violation().has_value()) return;
      hostile_.client->SendFrame(protocol::Bye{}, FrameType::kBye);
      Turn();
      hostile_.client.reset();
      break;
    }
    case State::kDying:
      Open(&hostile_);
      LetBegin();
      Lease(&hostile_, 3);
      Await([this] { return !hostile_.waits; }, "a newcomer gets nothing");
      hostile_.client.reset();
      Turn();
      break;
    case State::kParked:
      GoInside();
      break;
    case State::kInside:
    case State::kAsked:
    case State::kLeaving:
    case State::kAway:
    case State::kReturning:
      GoInside();
      if (!violation().has_value()) Crowd();
      if (state_ == State::kInside || state_ == State::kAsked || violation().has_value()) break;
      Quiet();
      if (state_ == State::kLeaving || violation().has_value()) break;
      EndCopies();
      Await([this] { return Where() == State::kAway && !neighbour_.waits; },
            "nobody gets its room");
      if (state_ == State::kAway || violation().has_value()) break;
      ToTrough(&neighbour_);
      break;
  }
  if (!Await([this] { return Where() == state_; }, "the state is not reached")) return;
  LookAtBytes();
}

HostileStage::Reaction HostileStage::Send(const std::vector<uint8_t>& frame, bool aside) {
  if (violation().has_value()) return Reaction::kNone;
  Reaction reaction = Reaction::kNone;
  if (aside || !hostile_.client.has_value()) {
    FuzzClient other(world_.path(hostile_.place));
    (void)other.Send(frame);
    Turn();
    Turn();
    while (const std::optional<Answer> answer = other.Receive()) {
      if (answer->type != FrameType::kClose) reaction = Reaction::kAnswered;
    }
    if (other.closed() && reaction == Reaction::kNone) reaction = Reaction::kClosed;
  } else {
    const size_t answers = answers_;
    if (!hostile_.client->Send(frame)) hostile_.client->Receive();
    Turn();
    Turn();
    if (answers_ > answers) reaction = Reaction::kAnswered;
    if (hostile_.client->closed()) {
      reaction = Reaction::kClosed;
      hostile_.client.reset();
    }
  }
  Turn();
  LookAtBytes();
  return reaction;
}

void HostileStage::Mark(uint32_t slot, uint64_t value) {
  if (!hostile_.client.has_value() || hostile_.client->mark() == nullptr) return;
  hostile_.client->mark()->mark[slot % protocol::kStreamSlots].store(value);
}

void HostileStage::PlayOut() {
  if (!Moves(state_) || violation().has_value()) return;
  if (Where() == State::kAsked && hostile_.client.has_value()) {
    hostile_.client->SendFrame(protocol::Quiet{}, FrameType::kQuiet, hostile_.seq);
    Turn();
  }
  EndCopies();
  Turn();
  if (Where() == State::kAway) {
    const auto answered = [this] { return !neighbour_.waits; };
    if (!Await(answered, "the neighbour waits for what was moved for it")) return;
    LookAtBytes();
    ToTrough(&neighbour_);
    Turn();
    EndCopies();
  }
  Turn();
  LookAtBytes();
}

void HostileStage::HonestStep() {
  // Beside one inside its iteration it is promised its memory when that is over.
  const auto inside = [this](const Actor& actor) {
    const scheduler::Job* known = Known(actor);
    return known != nullptr && known->phase == Phase::kRunning;
  };
  if (state_ == State::kParked || state_ == State::kInside || Moves(state_)) return;
  if (inside(neighbour_) || inside(hostile_)) return;
  world_.HonestTurn();
  Drain(&neighbour_);
  Drain(&hostile_);
}

Sight HostileStage::Look() const {
  Sight sight;
  sight.device = world_.device();
  sight.held = Leased(hostile_);
  const flow::FlowJob* job = world_.flow().Find(hostile_.id);
  if (job != nullptr && job->answer.has_value()) sight.seq = job->answer->seq;
  sight.session = hostile_.session;
  sight.profile = hostile_.profile;
  sight.iteration = hostile_.iteration;
  sight.unit_bytes = kUnit;
  return sight;
}

void HostileStage::End() {
  Reset();
  world_.End();
}

std::byte* HostileStage::At(Units unit) { return world_.gpu().pool.data() + unit * kUnit; }

/// By job and unit, so that nothing looks like it elsewhere.
void HostileStage::Paint(flow::JobId job, const scheduler::Extents& extents) {
  for (const scheduler::Extent& extent : extents) {
    for (Units unit = extent.offset; unit < extent.end(); ++unit) {
      std::fill_n(At(unit), kUnit, static_cast<std::byte>(job * 64 + unit));
    }
  }
}

void HostileStage::LookAtBytes() {
  if (violation().has_value()) return;
  if (!scheduler::Subtract(neighbour_.book, Leased(neighbour_)).empty()) {
    return world_.Violate("the neighbour has lost what it was given");
  }
  if (world_.gpu().violations() > 0) return world_.Violate("the GPU is used as none may be");
  if (neighbour_.client->closed()) return world_.Violate("the neighbour has lost its session");
  for (const scheduler::Extent& extent : neighbour_.book) {
    for (Units unit = extent.offset; unit < extent.end(); ++unit) {
      // All alike, and the first is right.
      const std::byte* const at = At(unit);
      const auto paint = static_cast<std::byte>(neighbour_.id * 64 + unit);
      if (*at != paint || std::memcmp(at, at + 1, kUnit - 1) != 0) {
        return world_.Violate("the neighbour's memory was written by somebody else");
      }
    }
  }
}

}  // namespace sluice::fuzz
