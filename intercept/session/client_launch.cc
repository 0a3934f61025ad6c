// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "intercept/base/line.h"
#include "intercept/session/client.h"

namespace sluice {

// Launches: records, marks, gates, credit. All waiting for other jobs is here and in LeaseFor.

namespace {

// If the GPU has not come to the mark that is waited for within this time the credit lets one
// launch pass: the stream may be waiting for something that only this thread will do.
constexpr uint64_t kStalledNs = 2'000'000'000;

}  // namespace

// The daemon has published something. The matcher starts again unless only amounts have changed.
void Client::RefreshProfile() {
  const LockGuard guard(state_lock_);
  protocol::ProfileImage& fresh = gate_->scratch;
  if (!protocol::ReadProfile(session_.daemon_page(), &fresh)) return;
  profile_seq_.store(fresh.seq, std::memory_order_relaxed);
  protocol::ProfileImage& now = gate_->profile;
  bool same = matcher_.following() && fresh.profile_id == now.profile_id &&
              fresh.period == now.period && fresh.pacing_slot == now.pacing_slot &&
              fresh.window == now.window && fresh.trough_place == now.trough_place &&
              fresh.trough_hash == now.trough_hash && fresh.gate_count == now.gate_count;
  for (uint32_t i = 0; same && i < now.gate_count; ++i) {
    same = fresh.gates[i].launch == now.gates[i].launch;
  }
  if (fresh.profile_id != 0 && fresh.profile_id == rejected_profile_) return;
  now = fresh;
  if (same) return;
  credit_.Reset();
  for (uint32_t& largest : gate_->largest) largest = 0;
  gate_->lifetimes.Forget();
  if (!matcher_.Follow(fresh.profile_id == 0 ? nullptr : &now, gate_->history)) {
    rejected_profile_ = fresh.profile_id;
  }
}

bool Client::BeforeLaunch(uint64_t function, CUstream stream, Ticket* ticket) {
  if (!has_session() || Capturing(stream)) return false;
  // A daemon that was started anew waits to hear of us.
  if (session_.client_page().resume_wanted.load(std::memory_order_relaxed) != 0) [[unlikely]] {
    static_cast<void>(Present());
  }
  if (gate_->functions.saw_collective()) [[unlikely]]
    session_.client_page().collectives.store(1, std::memory_order_relaxed);
  if (unsaid_.load(std::memory_order_relaxed)) [[unlikely]]
    SayUnsaid();
  uint32_t slot = kNoSlot;
  if (SlotOf(stream, &slot) != CUDA_SUCCESS || slot == kNoSlot) return false;
  const protocol::DaemonPage& page = session_.daemon_page();
  if (page.profile_seq.load(std::memory_order_acquire) !=
      profile_seq_.load(std::memory_order_relaxed)) {
    RefreshProfile();
  }
  ticket->stream = stream;
  ticket->slot = slot;
  ticket->function = function;
  ticket->timed = LaunchTimer::kNotTimed;
  if (trough_due_.load(std::memory_order_relaxed) && TakeTrough(slot)) PassTrough();
  if ((page.flags.load(std::memory_order_relaxed) & protocol::kWantTimes) != 0) {
    const RelaxedCapture relaxed(*driver_);
    gate_->timer.Poll(*driver_, [this](uint32_t timed_slot, uint32_t launch, uint64_t gpu_ns) {
      const LockGuard guard(state_lock_);
      Record(protocol::OpKind::kLaunchTime, timed_slot, launch, gpu_ns);
    });
    // Events are the session's context's, where they are recorded.
    if (InSessionContext(slot)) ticket->timed = gate_->timer.Begin(*driver_, stream);
  }
  return true;
}

bool Client::InSessionContext(uint32_t slot) {
  const LockGuard guard(state_lock_);
  return HomeOf(streams_[slot].context) == context_.load(std::memory_order_relaxed);
}

// Whether the trough is before the next launch of this stream, and nobody has gone through it yet.
bool Client::TakeTrough(uint32_t slot) {
  const LockGuard guard(state_lock_);
  if (matcher_.following() && matcher_.profile()->pacing_slot != slot) return false;
  trough_due_.store(false, std::memory_order_relaxed);
  return matcher_.following() && matcher_.TakePendingTrough();
}

void Client::AfterLaunch(const Ticket& ticket, bool issued) {
  if (!issued) {
    if (ticket.timed != LaunchTimer::kNotTimed) gate_->timer.Cancel(ticket.timed);
    return;
  }
  Matcher::Step step{};
  bool pacing = false;
  bool mark_due = false;
  bool look = false;  // what can be given back
  uint32_t number = 0;
  uint32_t profile = 0;
  bool after_last = false;
  bool onset = false;  // of pressure
  bool ahead = false;  // of the credit, unless it is known that it suffices
  {
    const LockGuard guard(state_lock_);
    number = launch_number_++;
    Record(protocol::OpKind::kLaunch, ticket.slot, number, ticket.function);
    StreamSlot& entry = streams_[ticket.slot];
    entry.dirty = true;
    ++entry.launches;
    pacing = matcher_.following() && matcher_.profile()->pacing_slot == ticket.slot;
    uint64_t credit_ns = 0;
    if (pacing) {
      profile = matcher_.profile()->profile_id;
      credit_ns = matcher_.profile()->credit_ns;
      after_last = matcher_.profile()->trough_place == protocol::TroughPlace::kAfterLast;
      step = matcher_.OnLaunch(ticket.function);
      credit_.OnLaunch(step.launch_ns);
      entry.launch_ns += step.launch_ns;
      if (step.mismatch) {
        rejected_profile_ = profile;
        gate_->lifetimes.Forget();
      }
      if (step.at_trough) trough_due_.store(true, std::memory_order_relaxed);
    }
    const bool pressure = Pressure();
    onset = pressure && !pressed_;
    pressed_ = pressure;
    mark_due = streams_.Due(ticket.slot, credit_ns, pressure);
    // Those that allocations and frees queued count as well, but not at every launch: what is given
    // back has to be asked for again.
    marked_ = marked_ || mark_due;
    ++unlooked_launches_;
    look = marked_ && (mark_due || unlooked_launches_ >= kMarkLaunches);
    if (look) {
      marked_ = false;
      unlooked_launches_ = 0;
    }
    // Memory that the GPU has not reached yet is held for nothing only if somebody wants it.
    ahead = pacing && pressure;
    // Looked at here, to take the lock once; a mark of our own has to be queued first.
    uint64_t wait_for = 0;
    if (ahead && !mark_due) ahead = AheadOfCredit(ticket.slot, &wait_for);
  }
  if (ticket.timed != LaunchTimer::kNotTimed) {
    const RelaxedCapture relaxed(*driver_);
    gate_->timer.End(*driver_, ticket.timed, ticket.stream, ticket.slot, number);
  }
  if (step.mismatch) SendMismatch(profile);
  if (mark_due) static_cast<void>(Mark(ticket.slot, false));
  // Nobody waited for marks, and there may be few; other streams may never ask for one again.
  if (onset) MarkFrees();
  if (step.at_trough && after_last) PassTrough();
  if (step.gate != 0) {
    PassGate(step.gate, profile);
  } else if (look && !step.at_trough && Pressure()) {
    ReleaseExcess(false);
  }
  if (ahead && !step.mismatch) WaitForCredit();
}

void Client::NoteCopy(size_t bytes, CUstream stream) {
  uint32_t slot = 0;
  if (SlotOf(stream, &slot) != CUDA_SUCCESS) return;
  const LockGuard guard(state_lock_);
  Record(protocol::OpKind::kCopy, slot, 0, bytes);
  if (slot < kNoSlot) streams_[slot].dirty = true;
}

// Marks every stream on which something was freed since its last mark, where that can be done now.
void Client::MarkFrees() {
  bool to_mark[protocol::kStreamSlots];
  uint32_t used = 0;
  {
    const LockGuard guard(state_lock_);
    used = streams_.used();
    for (uint32_t slot = 0; slot < used; ++slot) {
      to_mark[slot] = streams_[slot].active && arena_.HasUnsynced(slot) &&
                      !protocol::MarkReached(streams_.queued()[slot], arena_.LatestMark(slot));
    }
  }
  for (uint32_t slot = 0; slot < used; ++slot) {
    if (to_mark[slot]) static_cast<void>(Mark(slot, false));
  }
}

// Gives back wholly free units that the current group does not need, where the GPU has passed them.
// What it has not passed yet would count as held either way, and meanwhile only this job's own
// streams can use it: given back at once, it made the job lease afresh while it waited for its
// fence, and hold more than it needs. `waits`: the job waits for others, who may wait for these
// very units: they go now, fenced by marks, but for those of a stream that cannot be marked. Not
// without a profile: the next allocation may want the same space again (such a job grew beyond its
// peak). Of what it keeps of free units, enough lies together for the largest block that this group
// was seen to ask for.
void Client::ReleaseExcess(bool waits) {
  uint32_t excess = 0;
  uint32_t max_terms = 0;
  uint32_t spared = 0;
  {
    const LockGuard guard(state_lock_);
    const uint32_t held = arena_.held_units();
    const bool known = matcher_.following() && matcher_.synchronised();
    const uint32_t need = known ? matcher_.need_units() : 0;
    excess = held > need ? held - need : 0;
    if (excess > arena_.free_units()) excess = arena_.free_units();
    if (excess == 0) return;
    // Far ahead of the GPU the next iteration takes these units long before their fences are
    // reached.
    const bool early = waits || settings_.early_release;
    if (early && known && !Unbounded()) max_terms = protocol::kMaxFenceTerms;
    if (known) spared = gate_->largest[matcher_.gate()];
    // Any wholly free unit has room for less.
    if (spared <= arena_.unit_granules()) spared = 0;
  }
  if (max_terms > 0) MarkFrees();
  while (excess > 0) {
    const uint32_t released = ReleaseUnits(excess, max_terms, spared);
    excess -= released;
    if (released > 0) continue;
    if (spared == 0) break;
    spared = 0;
  }
}

// Whether the CPU may run ahead of the GPU without bound: then it waits for it at the trough
// neither.
bool Client::Unbounded() const {
  return (session_.daemon_page().flags.load(std::memory_order_relaxed) & protocol::kCreditOff) != 0;
}

void Client::PassTrough() {
  {
    const LockGuard guard(state_lock_);
    if (matcher_.following() && matcher_.synchronised()) {
      // What lives here has outlived its iteration; what was freed since its last launch has not.
      gate_->lifetimes.BeginIteration();
      arena_.CloseUnits();
    }
  }
  if (!Present()) return;
  bool drained = false;
  if (Pressure() && !Unbounded()) {
    drained = Drain();
    SettleDriverMemory();
    while (ReleaseUnits(~0u) > 0) {
    }
  }
  uint32_t profile = 0;
  {
    const LockGuard guard(state_lock_);
    gate_->gave_back = drained;
    if (!matcher_.following()) return;
    profile = matcher_.profile()->profile_id;
  }
  AskGate(0, profile, drained);
}

void Client::PassGate(uint32_t gate, uint32_t profile) {
  if (Pressure()) ReleaseExcess(false);
  {
    const LockGuard guard(state_lock_);
    if (!matcher_.following() || arena_.held_units() >= matcher_.need_units()) return;
  }
  AskGate(gate, profile, false);
}

// Stands at a gate until the daemon answers. None of the locks but request_lock_ is held meanwhile.
void Client::AskGate(uint32_t gate, uint32_t profile, bool drained) {
  const LockGuard guard(request_lock_);
  if (state_.load(std::memory_order_acquire) != State::kReady && !Resume()) return;
  const uint64_t start = NowNs();
  protocol::Gate frame{};
  frame.header = MakeHeader(protocol::FrameType::kGate, sizeof frame, 0);
  frame.gate = gate;
  frame.profile = profile;
  frame.iteration = iteration_;
  frame.drained = drained ? 1 : 0;
  send_lock_.Acquire();
  {
    const LockGuard inner(state_lock_);
    frame.held_units = arena_.held_units();
  }
  Answer answer;
  const Answer::Kind kind = Request(&frame.header, &answer);
  if (kind == Answer::kDenied) Line().Text(answer.text).PrintOnce();
  auto& waited = session_.client_page().gate_wait_ns;
  waited.store(waited.load(std::memory_order_relaxed) + (NowNs() - start),
               std::memory_order_relaxed);
  if (gate != 0) return;
  const LockGuard inner(state_lock_);
  Record(protocol::OpKind::kIteration, 0, 0, iteration_);
  ++iteration_;
}

// Under state_lock_. Whether the CPU should wait for a mark of the pacing stream, and which.
bool Client::AheadOfCredit(uint32_t slot, uint64_t* wait_for) {
  if (!matcher_.following() || !matcher_.synchronised()) return false;
  const uint64_t reached = session_.marks().mark[slot].load(std::memory_order_acquire);
  const bool ahead = credit_.ShouldWait(reached, matcher_.profile()->credit_ns, wait_for);
  session_.client_page().run_ahead_ns.store(credit_.lead_ns(), std::memory_order_relaxed);
  return ahead;
}

// Keeps the CPU within `credit_ns` of GPU time ahead of the GPU, so that memory which the GPU has
// not reached yet is not held for long. A wait counts while it lasts: noded sees it.
void Client::WaitForCredit() {
  auto& waited = session_.client_page().credit_wait_ns;
  while (Pressure() && !Unbounded()) {
    uint64_t wait_for = 0;
    uint32_t slot = 0;
    {
      const LockGuard guard(state_lock_);
      if (!matcher_.following()) return;
      slot = matcher_.profile()->pacing_slot;
      if (!AheadOfCredit(slot, &wait_for)) return;
    }
    const uint64_t start = NowNs();
    uint64_t counted = start;
    const std::atomic<uint64_t>& mark = session_.marks().mark[slot];
    Backoff backoff;
    while (!protocol::MarkReached(mark.load(std::memory_order_acquire), wait_for)) {
      if (counted - start > kStalledNs) return;
      backoff.Pause();
      const uint64_t now = NowNs();
      waited.fetch_add(now - counted, std::memory_order_relaxed);
      counted = now;
    }
  }
}

}  // namespace sluice
