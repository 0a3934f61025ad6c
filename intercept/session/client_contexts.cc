// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "intercept/session/client.h"

namespace sluice {

// The ends of contexts. What belongs to one ends with it; the session lives in one of them, and
// moves to another one on the same GPU when its own ends. Of the session only the registration of
// the marks belongs to a context: the pool is mapped for the GPU, in every context.
//
// Who holds the bytes: the pool's blocks stay whose they are, but for those that cuMemAlloc gave in
// the context that ends. What proves that nothing writes a mark any more while their page is
// registered anew: all that were queued in other contexts are reached, and none is queued until it
// is done. Who waits: the thread that ends the context, for that, as it waits for the context; and
// whoever waits for all of the GPU's work meanwhile. Frees do not.

// `shared`: the device of a primary context of which others may have a reference, so that it may
// live on; -1: success is its end. `green`: the reference is that of a green context, which ends.
template <class Issue>
CUresult Client::EndContext(CUcontext context, CUdevice shared, const Holding* green, Issue issue) {
  ContextEnd end;
  CUresult result = CUDA_SUCCESS;
  {
    const LockGuard guard(contexts_lock_);
    result = EndContextLocked(context, shared, green, issue, &end);
  }
  AfterContextEnd(end);
  return result;
}

// contexts_lock_ is held. `end`: what is to be done when it is not.
template <class Issue>
CUresult Client::EndContextLocked(CUcontext context, CUdevice shared, const Holding* green,
                                  Issue issue, ContextEnd* end) {
  if (context == nullptr) return issue();
  const bool own = has_session() && context == context_.load();
  const bool certain = shared < 0;
  // To the program a context that only the library holds is not there.
  const bool ours = !certain && shared == held_primary_;
  if (ours && !HasReference(Thing::kRetained, context)) return CUDA_ERROR_INVALID_CONTEXT;
  // As far as was seen here: with fewer references than the driver has, it only prepares for an end
  // that does not come.
  const bool dropped = !certain && DropReference(Thing::kRetained, context);
  const bool last = ours ? !HasReference(Thing::kRetained, context) : !dropped;
  const uint64_t ending = BeginContextEnd(context, certain);
  Holding gone{};
  // Before the driver may give the handle to somebody else.
  bool known = certain && !own && Forget(Thing::kContext, KeyOf(context), &gone);
  const uint64_t part = green != nullptr ? BeginGreenEnd(*green) : 0;
  CUcontext next = own && last ? Survivor(context) : nullptr;
  const bool renews = own && last && next == nullptr && held_primary_ != kNoDevice && HasLeased();
  const bool held = (next != nullptr || renews) && HoldMarks(KeyOf(context), ending);
  // The marks' page may be nobody's from here on.
  if (own && certain && !held) context_gone_ = true;
  const CUresult result = issue();
  // Its end is the program's to say.
  if (ours && last && result == CUDA_SUCCESS) ReleaseHeldPrimary();
  const bool ended = result == CUDA_SUCCESS && (certain || !PrimaryContextActive(shared));
  if (ended && !certain) NameStreams(KeyOf(context), ending, false, !held);
  // What the program was lent as physical memory is no context's, and it had none when it began.
  if (ended && held && renews) next = RetainHeldPrimary(session_.device());
  const bool moved = ended && held && next != nullptr && MoveSession(next);
  if (renews && ended && !moved) ReleaseHeldPrimary();
  end->session_over = ended && own && !moved;
  if (own) context_gone_ = end->session_over;
  if (held) ReleaseMarks();
  if (ended && !certain && !own) known = Forget(Thing::kContext, KeyOf(context), &gone);
  if (known) ended ? GiveUp(gone) : Keep(gone);
  if (ended) end->unpaced = LosePacing(ending);
  if (part != 0 && result == CUDA_SUCCESS && end->unpaced == 0) {
    end->unpaced = LosePacing(part);
  }
  if (part != 0) FinishGreenEnd(part, result == CUDA_SUCCESS);
  FinishContextEnd(ending, certain, ended);
  if (dropped && result != CUDA_SUCCESS) static_cast<void>(AddReference(Thing::kRetained, context));
  return result;
}

void Client::AfterContextEnd(const ContextEnd& end) {
  if (end.session_over) {
    EndSession();
  } else if (end.unpaced != 0) {
    SendMismatch(end.unpaced);
  }
  SettleDriverMemory();
}

CUresult Client::ContextDestroy(CUcontext context) {
  return EndContext(context, -1, nullptr, [=, this] { return driver_->cuCtxDestroy_v2(context); });
}

// The references of cuCtxAttach are counted here: once the driver has answered, whoever asked it
// whether a context lives might be told of a new one of its handle. Under contexts_lock_, so that
// the count is the driver's.
CUresult Client::ContextAttach(CUcontext* out, unsigned flags) {
  const LockGuard guard(contexts_lock_);
  const CUresult result = driver_->cuCtxAttach(out, flags);
  if (result != CUDA_SUCCESS || AddReference(Thing::kAttached, *out)) return result;
  static_cast<void>(driver_->cuCtxDetach(*out));
  return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult Client::ContextDetach(CUcontext context) {
  ContextEnd end;
  CUresult result = CUDA_SUCCESS;
  {
    const LockGuard guard(contexts_lock_);
    const auto issue = [=, this] { return driver_->cuCtxDetach(context); };
    if (DropReference(Thing::kAttached, context)) {
      result = issue();
      if (result != CUDA_SUCCESS) static_cast<void>(AddReference(Thing::kAttached, context));
      return result;
    }
    // The program's own last one. A primary context may have references of its own kind.
    CUdevice device = -1;
    const bool shared =
        driver_->cuCtxGetDevice(&device) == CUDA_SUCCESS && context == PrimaryContextOf(device);
    result = EndContextLocked(context, shared ? device : -1, nullptr, issue, &end);
  }
  AfterContextEnd(end);
  return result;
}

// One reference more. False: there is no memory to count it.
bool Client::AddReference(Thing how, CUcontext context) {
  const uint64_t key = KeyOf(context);
  const LockGuard guard(outside_lock_);
  Holding* known = holdings_.Find(how, key);
  // Else it is none, or that of one whose handle this was, which has ended with references left.
  if (known != nullptr && known->context == key) {
    ++known->refs;
    return true;
  }
  Holding first{};
  first.thing = how;
  first.key = key;
  first.context = key;
  first.refs = 1;
  return holdings_.Insert(first);
}

// One reference less. False: there was none.
bool Client::DropReference(Thing how, CUcontext context) {
  const uint64_t key = KeyOf(context);
  const LockGuard guard(outside_lock_);
  Holding* known = holdings_.Find(how, key);
  if (known == nullptr || known->context != key) return false;
  Holding last{};
  if (--known->refs == 0) static_cast<void>(holdings_.Take(how, key, &last));
  return true;
}

bool Client::HasReference(Thing how, CUcontext context) {
  const LockGuard guard(outside_lock_);
  const Holding* known = holdings_.Find(how, KeyOf(context));
  return known != nullptr && known->context == KeyOf(context);
}

// A session is to begin where the program has made no context current. Beside a reference of the
// library's the program's are all counted, the first one too: with the last of them it goes as
// well.
CUresult Client::HoldPrimary(CUdevice device, CUcontext* out) {
  const LockGuard guard(contexts_lock_);
  const bool made = !PrimaryContextActive(device);
  const CUresult result = driver_->cuDevicePrimaryCtxRetain(out, device);
  if (result != CUDA_SUCCESS) return result;
  if (!made && !AddReference(Thing::kRetained, *out)) {
    static_cast<void>(driver_->cuDevicePrimaryCtxRelease_v2(device));
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  held_primary_ = device;
  return CUDA_SUCCESS;
}

// With contexts_lock_, as the next one. Null: the driver refuses.
CUcontext Client::RetainHeldPrimary(CUdevice device) {
  CUcontext primary = nullptr;
  if (driver_->cuDevicePrimaryCtxRetain(&primary, device) != CUDA_SUCCESS) return nullptr;
  held_primary_ = device;
  return primary;
}

void Client::ReleaseHeldPrimary() {
  if (held_primary_ == kNoDevice) return;
  static_cast<void>(driver_->cuDevicePrimaryCtxRelease_v2(held_primary_));
  held_primary_ = kNoDevice;
}

// No session has come of it.
void Client::LetGoOfPrimary() {
  const LockGuard guard(contexts_lock_);
  if (held_primary_ == kNoDevice) return;
  const CUcontext primary = PrimaryContextOf(held_primary_);
  ReleaseHeldPrimary();
  if (!DropReference(Thing::kRetained, primary)) return;
  // A program's first one makes the context, and is not counted.
  KeepContext(primary, false);
}

// Under contexts_lock_: if another thread gives back the last reference just now, this one makes a
// new context, perhaps of the same handle, of whose end and beginning both have to know.
template <class Issue>
CUresult Client::RetainShared(CUdevice device, CUcontext* out, Issue issue) {
  for (bool charged = false;;) {
    {
      const LockGuard guard(contexts_lock_);
      // A further reference to one that is there costs nothing.
      const bool made = !PrimaryContextActive(device);
      if (!made || charged || !has_session()) {
        const CUresult result = issue();
        const bool kept = made && result == CUDA_SUCCESS;
        if (kept) KeepContext(*out, charged);
        // Without memory to count it, it is one fewer.
        if (!made && result == CUDA_SUCCESS)
          static_cast<void>(AddReference(Thing::kRetained, *out));
        if (charged && !kept) Uncharge(protocol::Family::kContext, 1);
        return result;
      }
    }
    // The daemon is not asked under that lock.
    const CUresult result = ChargeInSession(protocol::Family::kContext, 1);
    charged = result == CUDA_SUCCESS;
    // A session that has just ended charges for nothing, and refuses nothing either.
    if (!charged && has_session()) return result;
  }
}

CUresult Client::PrimaryContextRetain(CUcontext* out, CUdevice device) {
  const CUresult result = RetainShared(
      device, out, [=, this] { return driver_->cuDevicePrimaryCtxRetain(out, device); });
  if (result == CUDA_SUCCESS) ShowPresence();
  return result;
}

CUresult Client::GreenCreate(CUgreenCtx* out, CUdevResourceDesc desc, CUdevice device,
                             unsigned flags) {
  CUcontext primary = nullptr;
  const auto issue = [&, this] {
    const CUresult result = driver_->cuGreenCtxCreate(out, desc, device, flags);
    if (result == CUDA_SUCCESS) primary = PrimaryContextOf(device);
    return result;
  };
  // Where there is no primary context, this makes it.
  const CUresult result = RetainShared(device, &primary, issue);
  if (result != CUDA_SUCCESS) return result;
  ShowPresence();
  CUcontext view = nullptr;
  if (driver_->cuCtxFromGreenCtx == nullptr ||
      driver_->cuCtxFromGreenCtx(&view, *out) != CUDA_SUCCESS || view == primary) {
    view = nullptr;
  }
  KeepGreen({KeyOf(*out), 0, KeyOf(primary), KeyOf(view), 0, 1, static_cast<uint32_t>(device),
             Thing::kGreen});
  many_contexts_ = true;  // its streams are not waited for with another context
  return result;
}

CUresult Client::PrimaryContextReset(CUdevice device) {
  const CUcontext primary = PrimaryContextOf(device);
  {
    // Nothing of the program's is in a context that only the library holds.
    const LockGuard guard(contexts_lock_);
    if (device == held_primary_ && !HasReference(Thing::kRetained, primary)) return CUDA_SUCCESS;
  }
  return EndContext(primary, -1, nullptr, [=, this] {
    const CUresult result = driver_->cuDevicePrimaryCtxReset_v2(device);
    if (result != CUDA_SUCCESS || device != held_primary_) return result;
    // A driver may keep references beyond it.
    if (!PrimaryContextActive(device)) held_primary_ = kNoDevice;
    ReleaseHeldPrimary();
    return result;
  });
}

// `green`: one of that device, which holds a reference and gives it back with its own end.
CUresult Client::ReleasePrimary(CUdevice device, const Holding* green) {
  return EndContext(PrimaryContextOf(device), device, green, [=, this] {
    return green == nullptr ? driver_->cuDevicePrimaryCtxRelease_v2(device)
                            : driver_->cuGreenCtxDestroy(reinterpret_cast<CUgreenCtx>(green->key));
  });
}

bool Client::PrimaryContextActive(CUdevice device) const {
  unsigned flags = 0;
  int active = 0;
  return driver_->cuDevicePrimaryCtxGetState != nullptr &&
         driver_->cuDevicePrimaryCtxGetState(device, &flags, &active) == CUDA_SUCCESS &&
         active != 0;
}

// Another context that is known, on the session's GPU. It stays: whoever would end it waits for
// contexts_lock_, which is held.
CUcontext Client::Survivor(CUcontext ending) {
  for (uint64_t next = NextContext(0); next != 0; next = NextContext(next)) {
    const auto context = reinterpret_cast<CUcontext>(next);
    if (context != ending && DeviceOf(context) == session_.device()) return context;
  }
  return nullptr;
}

// No mark is queued from here on, and those of other contexts are reached: the page that they write
// is about to be nobody's. What is queued in the one that ends, its end waits for. False, with
// nothing held: they are not reached in time.
bool Client::HoldMarks(uint64_t alive, uint64_t ending) {
  {
    // Who is between its question and its write comes to the end of it; nobody begins.
    const LockGuard marking(mark_locks_);
    marks_held_.store(true, std::memory_order_relaxed);
  }
  gate_->timer.Hold();
  // Streams of green contexts that are gone were the primary context's.
  const bool primary = KeyOf(PrimaryContextOf(session_.device())) == alive;
  uint64_t targets[protocol::kStreamSlots];
  uint32_t used = 0;
  {
    const LockGuard guard(state_lock_);
    used = streams_.used();
    for (uint32_t slot = 0; slot < used; ++slot) {
      const uint64_t context = KeyOf(streams_[slot].context);
      const bool its = context == alive || context == ending || (context == 0 && primary);
      targets[slot] = its ? session_.marks().mark[slot].load(std::memory_order_acquire)
                          : streams_.queued()[slot];
    }
  }
  uint64_t before = 0;
  for (uint64_t now = MarksSum(used); !WaitForMarks(targets, used); now = MarksSum(used)) {
    if (now == before) {  // the GPU stands still: what it waits for may be this thread
      ReleaseMarks();
      return false;
    }
    before = now;
  }
  return true;
}

// Grows with every mark that is reached.
uint64_t Client::MarksSum(uint32_t slots) const {
  uint64_t sum = 0;
  for (uint32_t slot = 0; slot < slots; ++slot) sum += session_.marks().mark[slot].load();
  return sum;
}

void Client::ReleaseMarks() {
  gate_->timer.Release();
  marks_held_.store(false, std::memory_order_relaxed);
}

// The session's context is gone, and HoldMarks is in force. False: it cannot live in that one.
bool Client::MoveSession(CUcontext next) {
  if (driver_->cuCtxPushCurrent_v2(next) != CUDA_SUCCESS) return false;
  const bool moved = session_.RegisterMarksAnew(*driver_);
  CUcontext popped = nullptr;
  static_cast<void>(driver_->cuCtxPopCurrent_v2(&popped));
  if (!moved) return false;
  // Events and functions belonged to the old one.
  gate_->timer.Forget();
  gate_->functions.Forget();
  context_.store(next);
  // What the daemon charges for the session's own context stands for this one now.
  Holding own{};
  if (Forget(Thing::kContext, KeyOf(next), &own)) GiveUp(own);
  return true;
}

// The launches that paced the iterations do not come any more: the job has no profile then. 0, or
// the profile that the daemon is to be told of.
uint32_t Client::LosePacing(uint64_t ending) {
  if (!has_session()) return 0;
  const LockGuard guard(state_lock_);
  if (!matcher_.following()) return 0;
  const uint32_t slot = matcher_.profile()->pacing_slot;
  if (slot >= kNoSlot || KeyOf(streams_[slot].context) != ending) return 0;
  rejected_profile_ = matcher_.profile()->profile_id;
  static_cast<void>(matcher_.Follow(nullptr, gate_->history));
  gate_->lifetimes.Forget();
  return rejected_profile_;
}

}  // namespace sluice
