// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "intercept/base/line.h"
#include "intercept/session/client.h"

namespace sluice {

// Memory that is not served from the arena. The daemon is asked before the driver is, and told when
// the driver has it back; between the two it is somebody's for certain, and nobody lends it.

using protocol::Family;
using protocol::FrameType;

namespace {

constexpr size_t kFirstCounted = static_cast<size_t>(Family::kImported);

}  // namespace

bool Client::Accounted() const { return session_.daemon_minor() >= 1; }

// The session is there. An answer comes at once, so this waits only for requests of other threads.
CUresult Client::ChargeInSession(Family family, uint64_t bytes) {
  const LockGuard guard(request_lock_);
  return ChargeLocked(family, bytes);
}

CUresult Client::ChargeLocked(Family family, uint64_t bytes) {
  if (!Accounted()) return CUDA_SUCCESS;
  // While the session is being opened there is nothing yet that could be resumed.
  const bool opening = opening_.load();
  for (bool tried = false;; tried = true) {
    if (!opening && state_.load(std::memory_order_acquire) != State::kReady && !Resume()) {
      Line().Text("no daemon to ask for memory outside the pool: none is given").PrintOnce();
      return CUDA_ERROR_OUT_OF_MEMORY;
    }
    protocol::Charge frame{};
    frame.header = MakeHeader(FrameType::kCharge, sizeof frame, 0);
    frame.family = static_cast<uint32_t>(family);
    frame.bytes = bytes;
    Answer answer;
    send_lock_.Acquire();
    SendUnsent();
    const Answer::Kind kind = Request(&frame.header, &answer);
    if (kind == Answer::kGranted) {
      const LockGuard guard(outside_lock_);
      charged_[static_cast<size_t>(family)] += family == Family::kContext ? 1 : bytes;
      if (family != Family::kContext) outside_bytes_.fetch_add(bytes, std::memory_order_relaxed);
      return CUDA_SUCCESS;
    }
    if (kind == Answer::kLost && !opening) continue;
    if (tried || opening || answer.code != protocol::DenyCode::kOverLimit) {
      Line().Text(answer.text).PrintOnce();
      return CUDA_ERROR_OUT_OF_MEMORY;
    }
    // Over the limit: what the arena holds and does not need counts, too.
    static_cast<void>(Drain());
    while (ReleaseUnits(~0u) > 0) {
    }
  }
}

CUresult Client::Charge(Family family, uint64_t bytes, CUdevice device) {
  if (const CUresult result = EnsureSessionOn(device); result != CUDA_SUCCESS) return result;
  if (!Accounted() && (family == Family::kPhysical || family == Family::kManaged)) {
    Line()
        .Text(
            "this daemon does not know how to charge memory outside the pool: managed and physical "
            "memory (cuMemAllocManaged, cuMemCreate) are refused; use cuMemAlloc or "
            "cuMemAllocAsync, or a newer sluice-noded")
        .PrintOnce();
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  return ChargeInSession(family, bytes);
}

// Never waits: a free may be what somebody else waits for. What cannot be said now is said before
// the next request, or declared to the next daemon, which is told what is charged and not what
// changed.
void Client::Uncharge(Family family, uint64_t bytes) {
  {
    const LockGuard guard(outside_lock_);
    uint64_t& charged = charged_[static_cast<size_t>(family)];
    // What an earlier session was charged for is none of this one's.
    if (bytes > charged) bytes = charged;
    if (bytes == 0) return;
    charged -= bytes;
    unsent_[static_cast<size_t>(family)] += bytes;
    if (family != Family::kContext) outside_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
  }
  unsaid_.store(true);
  if (!send_lock_.TryAcquire()) return;
  if (state_.load(std::memory_order_acquire) == State::kIdle && !opening_.load()) {
    SendUnsentAlone(static_cast<uint32_t>(family));
  } else {
    SendUnsent();
  }
  send_lock_.Release();
}

// Never waits. Where it fails (another thread speaks, and may be past it already; the daemon takes
// nothing just now) the next launch or request says it.
void Client::SayUnsaid() {
  if (!send_lock_.TryAcquire()) return;
  SendUnsent();
  send_lock_.Release();
}

// send_lock_ is held. `wait`: until the daemon takes it; else what it does not take now stays for
// later. A context is a frame of its own: the daemon knows what one costs.
void Client::SendUnsent(bool wait) {
  if (state_.load(std::memory_order_acquire) != State::kReady || !Accounted()) return;
  unsaid_.store(false);  // before looking: what comes later is said later
  CollectUnseen();
  for (uint32_t family = 0; family < protocol::kMaxOutsideFamilies;) {
    const bool counted = family >= kFirstCounted;
    protocol::Uncharge frame{};
    static_assert(sizeof(protocol::Count) == sizeof frame);
    uint64_t said = 0;
    {
      const LockGuard guard(outside_lock_);
      uint64_t& unsent = unsent_[family];
      const bool known =
          family < protocol::kFirstUnseenFamily || session_.daemon_minor() >= protocol::kRestMinor;
      if (unsent == 0 || !known) {
        ++family;
        continue;
      }
      said = family == static_cast<uint32_t>(Family::kContext) ? 1 : unsent;
      frame.bytes = counted ? counted_[family - kFirstCounted].load() : said;
      unsent -= said;
    }
    frame.header = MakeHeader(counted ? FrameType::kCount : FrameType::kUncharge, sizeof frame, 0);
    frame.family = family;
    if (wait ? session_.Send(&frame.header) == nullptr : session_.TrySend(&frame.header)) continue;
    unsaid_.store(true);
    const LockGuard guard(outside_lock_);
    unsent_[family] += counted ? 1 : said;
    return;
  }
}

void Client::Keep(const Holding& holding) {
  Holding kept = holding;
  if (kept.context == 0 && EndsWithContext(kept)) kept.context = KeyOf(HomeOf(CurrentContext()));
  Holding old{};
  bool again = false;
  {
    const LockGuard guard(outside_lock_);
    again = holdings_.Take(kept.thing, kept.key, &old);
    // Without memory for the entry its charge stays until the process ends: too much, never too
    // little.
    static_cast<void>(holdings_.Insert(kept));
  }
  // A handle that comes again: what it was ended with a context, of which nobody has heard yet.
  if (again) GiveUp(old);
}

bool Client::Forget(Thing thing, uint64_t key, Holding* out) {
  const LockGuard guard(outside_lock_);
  return holdings_.Take(thing, key, out);
}

// The program has let go of it: whoever pays for it pays no longer.
void Client::GiveUp(const Holding& gone) {
  if (gone.family == 0) return;
  const auto family = static_cast<Family>(gone.family);
  if (gone.family >= kFirstCounted) {
    Count(family, -static_cast<int64_t>(gone.bytes));
  } else {
    Uncharge(family, gone.bytes);
  }
}

void Client::Count(Family family, int64_t change) {
  counted_[static_cast<size_t>(family) - kFirstCounted].fetch_add(static_cast<uint64_t>(change),
                                                                  std::memory_order_relaxed);
  {
    const LockGuard guard(outside_lock_);
    unsent_[static_cast<size_t>(family)] = 1;  // what is sent is the whole, whenever that is
  }
  unsaid_.store(true);
  SayUnsaid();
}

// From inside dlsym, by any thread, whatever it holds: no lock, and nothing is sent. The next
// request says it.
void Client::CountUnseen(bool new_name) {
  const auto counter = [this](Family family) -> std::atomic<uint64_t>& {
    return counted_[static_cast<size_t>(family) - kFirstCounted];
  };
  if (new_name) counter(Family::kUnseenNames).fetch_add(1, std::memory_order_relaxed);
  counter(Family::kUnseenLookups).fetch_add(1, std::memory_order_relaxed);
  unseen_unsaid_.store(true, std::memory_order_release);
}

// send_lock_ is held. What CountUnseen has left is due like what Count has changed.
void Client::CollectUnseen() {
  if (!unseen_unsaid_.exchange(false, std::memory_order_acquire)) return;
  const LockGuard guard(outside_lock_);
  for (const Family family : {Family::kUnseenNames, Family::kUnseenLookups}) {
    const auto index = static_cast<size_t>(family);
    if (counted_[index - kFirstCounted].load(std::memory_order_relaxed) != 0) unsent_[index] = 1;
  }
}

void Client::KeepCounted(Thing thing, uint64_t key, uint64_t bytes, Family family) {
  Holding holding{};
  holding.thing = thing;
  holding.key = key;
  holding.bytes = bytes;
  holding.family = static_cast<uint32_t>(family);
  holding.refs = 1;
  Keep(holding);
  Count(family, static_cast<int64_t>(bytes));
}

// Its size is asked for in a context that is there, if the program has made none current.
void Client::KeepForeign(CUdeviceptr at) {
  const bool none = CurrentContext() == nullptr && has_session();
  const ContextScope inside(*driver_, none ? context_.load() : nullptr);
  size_t bytes = 0;
  if (driver_->cuMemGetAddressRange_v2(nullptr, &bytes, at) == CUDA_SUCCESS) {
    KeepCounted(Thing::kPointer, at, bytes, Family::kImported);
  }
}

// What was there before the session: contexts of which it can only be in one, what those have, and
// what outlives a context. Without room for it the job gets no session. request_lock_ is held.
CUresult Client::DeclareOutside() {
  Holding own{};
  static_cast<void>(Forget(Thing::kContext, KeyOf(context_.load()), &own));
  uint64_t contexts = 0;
  {
    const LockGuard guard(outside_lock_);
    holdings_.ForEach([&](Holding& holding) {
      if (holding.thing != Thing::kContext) return;
      holding.family = static_cast<uint32_t>(Family::kContext);
      holding.bytes = 1;
      ++contexts;
      many_contexts_ = true;
    });
    for (size_t i = 0; i < kCountedFamilies; ++i) {
      if (counted_[i].load() != 0) unsent_[kFirstCounted + i] = 1;
    }
  }
  for (; contexts > 0; --contexts) {
    if (const CUresult result = ChargeLocked(Family::kContext, 1); result != CUDA_SUCCESS) {
      return result;
    }
  }
  return SettleAccount(true);
}

// What lives on outside the pool whatever becomes of the session, by charged family. The driver
// says what it has for pools and graphs.
void Client::LivingOutside(uint64_t* bytes) {
  {
    const LockGuard guard(outside_lock_);
    holdings_.ForEach([&](const Holding& holding) {
      if (holding.thing != Thing::kContext && holding.family < kFirstCounted) {
        bytes[holding.family] += holding.bytes;
      }
    });
  }
  bytes[static_cast<size_t>(Family::kPool)] = PoolsReserved();
  bytes[static_cast<size_t>(Family::kGraph)] = GraphsReserved() + GraphsPending();
}

// Charged for is from here on what lives. An earlier session may have left more on the account than
// that, or less. `may_grow`: false, a session ends, and nothing is asked for any more.
CUresult Client::SettleAccount(bool may_grow) {
  uint64_t living[kFirstCounted] = {};
  if (may_grow || session_.daemon_minor() >= protocol::kRestMinor) LivingOutside(living);
  for (uint32_t family = 1; family < kFirstCounted; ++family) {
    if (family == static_cast<uint32_t>(Family::kContext)) continue;
    uint64_t charged = 0;
    {
      const LockGuard guard(outside_lock_);
      charged = charged_[family];
    }
    if (charged > living[family]) {
      Uncharge(static_cast<Family>(family), charged - living[family]);
    } else if (charged < living[family] && may_grow) {
      const CUresult result = ChargeLocked(static_cast<Family>(family), living[family] - charged);
      if (result != CUDA_SUCCESS) return result;
    }
    if (!may_grow || living[family] == 0) continue;
    if (family == static_cast<uint32_t>(Family::kPool)) pools_charged_.store(living[family]);
    if (family == static_cast<uint32_t>(Family::kGraph)) {
      graphs_charged_.store(living[family]);
      driver_served_.store(true, std::memory_order_relaxed);
    }
  }
  return CUDA_SUCCESS;
}

// A context ends: what belongs to it gets another name before the driver is asked. A moment after
// the driver's answer the handle may be a new context's, whose things are none of it.
// contexts_lock_ is held until it has ended. `certain`: it will end, so that its streams are marked
// no more: nobody uses their handles once the driver may have freed them.
uint64_t Client::BeginContextEnd(CUcontext context, bool certain) {
  const uint64_t ending = KeyOf(context) | kEnding;
  NameContext(KeyOf(context), ending);
  if (certain) NameStreams(KeyOf(context), ending, false);
  return ending;
}

// `await_marks`: false, the caller holds the locks over them.
void Client::NameStreams(uint64_t from, uint64_t to, bool active, bool await_marks) {
  bool named[protocol::kStreamSlots] = {};
  {
    const LockGuard guard(state_lock_);
    streams_.NameContext(reinterpret_cast<CUcontext>(from), reinterpret_cast<CUcontext>(to), active,
                         [&](uint32_t slot) { named[slot] = true; });
    stream_generation_.fetch_add(1, std::memory_order_release);
  }
  for (uint32_t slot = 0; slot < protocol::kStreamSlots && !active && await_marks; ++slot) {
    if (named[slot]) const LockGuard marking(mark_locks_[slot]);  // one under way is waited for
  }
}

void Client::NameContext(uint64_t from, uint64_t to) {
  captures_.NameContext(from, to);
  {
    const LockGuard guard(state_lock_);
    owners_.Rename(from, to);
  }
  const LockGuard guard(outside_lock_);
  holdings_.ForEach([&](Holding& holding) {
    if (holding.context == from) holding.context = to;
  });
}

// A context is gone, and with it all that belonged to it, whether there is a session or not. What
// other contexts have stays theirs. `ended`: false, the driver has refused and it lives.
void Client::FinishContextEnd(uint64_t ending, bool certain, bool ended) {
  const uint64_t alive = ending & ~kEnding;
  if (!ended) {
    if (certain) NameStreams(ending, alive, true);
    return NameContext(ending, alive);
  }
  captures_.ContextGone(ending);
  if (has_session()) {
    const LockGuard guard(state_lock_);
    for (uint32_t slot = 0; slot < streams_.used(); ++slot) {
      if (KeyOf(streams_[slot].context) != ending) continue;
      // Marks may have been dropped with it. What they would have said is true now, and fences that
      // wait for them may be reached.
      const uint64_t queued = streams_.queued()[slot];
      auto& mark = session_.marks().mark[slot];
      if (!protocol::MarkReached(mark.load(std::memory_order_acquire), queued)) {
        mark.store(queued, std::memory_order_release);
      }
      arena_.CollectThrough(slot, arena_.FreeSeq());  // the GPU has done all that was on it
      streams_[slot].context = nullptr;
    }
  }
  if (has_session()) FreeOwned(ending);
  uint64_t gone[protocol::kMaxOutsideFamilies] = {};
  {
    const LockGuard guard(outside_lock_);
    bool others = false;
    holdings_.ForEach([&](Holding& holding) {
      others = others || holding.thing == Thing::kContext || holding.thing == Thing::kGreen;
      if (holding.context != ending) return;
      // Whoever gets the handle next has none of these.
      if (holding.thing == Thing::kAttached || holding.thing == Thing::kRetained)
        holding.context = 0;
      if (!EndsWithContext(holding)) return;
      gone[holding.family] += holding.bytes;
      holding.family = 0;  // its handle may still come to be given up
      if (holding.thing == Thing::kGraphExec) holding.bytes = 0;  // and will take no more
    });
    if (!others) many_contexts_ = false;
  }
  for (uint32_t family = 1; family < protocol::kMaxOutsideFamilies; ++family) {
    if (family < kFirstCounted) {
      Uncharge(static_cast<Family>(family), gone[family]);
    } else if (gone[family] > 0) {
      Count(static_cast<Family>(family), -static_cast<int64_t>(gone[family]));
    }
  }
  DropTiles(0, ending);
}

// The session ends with its context. What lives on stays on the account; contexts alone keep nobody
// waiting.
void Client::LeaveAccount() { static_cast<void>(SettleAccount(false)); }

// At the end of the conversation: `left` is what the daemon keeps for the next one. What it was not
// told to be gone is part of that, and still to be said.
void Client::KeepAccount(uint64_t* left) {
  const bool kept = session_.daemon_minor() >= protocol::kRestMinor;
  const LockGuard guard(outside_lock_);
  uint64_t sum = 0;
  for (size_t family = 0; family < protocol::kMaxOutsideFamilies; ++family) {
    const bool context = family == static_cast<size_t>(Family::kContext);
    if (!kept || context || family >= kFirstCounted) charged_[family] = unsent_[family] = 0;
    left[family] = charged_[family] + unsent_[family];
    sum += charged_[family];
  }
  outside_bytes_.store(sum);
}

void Client::ForgetAccount() {
  const LockGuard guard(outside_lock_);
  for (size_t family = 0; family < protocol::kMaxOutsideFamilies; ++family) {
    charged_[family] = unsent_[family] = 0;
  }
  outside_bytes_.store(0);
}

// Between two sessions, and send_lock_ is held. What the daemon does not take now, or while another
// thread begins or ends a session, is said with the next one.
void Client::SendUnsentAlone(uint32_t family) {
  if (!request_lock_.TryAcquire()) return;
  uint64_t bytes = 0;
  {
    const LockGuard guard(outside_lock_);
    bytes = unsent_[family];
  }
  const bool between = state_.load(std::memory_order_acquire) == State::kIdle;
  if (between && bytes > 0 && session_.GiveBack(socket_path_, family, bytes)) {
    const LockGuard guard(outside_lock_);
    unsent_[family] -= bytes;
  }
  request_lock_.Release();
}

uint64_t Client::OutsideInLimit() const {
  return session_.limit_given() ? outside_bytes_.load(std::memory_order_relaxed) : 0;
}

// The context beside the session's whose key is the least above `last`; 0: there is none.
uint64_t Client::NextContext(uint64_t last) {
  uint64_t next = 0;
  const LockGuard guard(outside_lock_);
  holdings_.ForEach([&](const Holding& holding) {
    if (holding.thing == Thing::kContext && holding.key > last &&
        (next == 0 || holding.key < next)) {
      next = holding.key;
    }
  });
  return next;
}

// Contexts. The first one is there before there is a session, and is the daemon's to charge.

void Client::KeepContext(CUcontext context, bool charged) {
  Holding holding{};
  holding.thing = Thing::kContext;
  holding.key = KeyOf(context);
  holding.bytes = 1;
  holding.family = charged ? static_cast<uint32_t>(Family::kContext) : 0;
  const LockGuard guard(outside_lock_);
  // The session may have moved there since the caller looked: MoveSession says so first, and then
  // takes the entry out.
  if (has_session() && !context_gone_ && context == context_.load()) return;
  // A green one is waited for with its primary one.
  if (HomeLocked(holding.key) == holding.key &&
      holdings_.Find(Thing::kContext, holding.key) == nullptr) {
    static_cast<void>(holdings_.Insert(holding));
  }
  // Its streams may work on what the session has, through calls that nobody sees (a session that is
  // being opened just now finds the context among what there is).
  many_contexts_ = true;
}

}  // namespace sluice
