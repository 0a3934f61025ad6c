// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "intercept/session/client.h"

#include <string.h>

#include "intercept/base/line.h"

namespace sluice {

// The life of the session, and everything that is said to the daemon.

using protocol::FrameType;

namespace {

// For a request of another thread that is answered at once.
constexpr uint64_t kEndPatienceNs = 100'000'000;

// A lease that the daemon can give is there long before.
constexpr uint64_t kSoonMs = 2;

// As long as a request waits for a daemon that died; then others look again now and then.
constexpr uint64_t kPartingMs = 30'000;
constexpr uint64_t kLookAgainNs = 10'000'000'000;

}  // namespace

void Client::Configure(const DriverTable* driver, const char* socket_path,
                       const Settings& settings) {
  driver_ = driver;
  socket_path_ = socket_path;
  settings_ = settings;
  session_.SaySilentAfter(settings.silence_ms);
  state_.store(State::kIdle, std::memory_order_release);
}

// A child of a process that never touched the GPU may become the job's GPU process itself. Any
// other child is none of the session's business: CUDA does not work in it, and it must not speak
// for its parent. Locks may be held by threads that do not exist here.
void Client::AfterForkInChild() {
  const State state = state_.load(std::memory_order_relaxed);
  const bool untouched =
      state != State::kReady && state != State::kAway && state != State::kLost && !opening_.load();
  if (!untouched) {
    session_.ForgetInChild();
    state_.store(State::kForked, std::memory_order_release);
  } else if (session_.parting()) {
    session_.ForgetInChild();
  }
  request_lock_.ForgetHolder();
  contexts_lock_.ForgetHolder();
  send_lock_.ForgetHolder();
  mark_locks_.ForgetHolder();
  state_lock_.ForgetHolder();
  outside_lock_.ForgetHolder();
  captures_.ForgetHolder();
  settle_lock_.ForgetHolder();
  pools_lock_.ForgetHolder();
  report_.AfterForkInChild();
  present_.store(false);
  held_primary_ = kNoDevice;
  // What an earlier session left on the account is its process's.
  if (untouched) ForgetAccount();
}

CUresult Client::EnsureSession() {
  CUdevice device = 0;
  if (const CUresult result = driver_->cuCtxGetDevice(&device); result != CUDA_SUCCESS) {
    return result;
  }
  return EnsureSessionOn(device);
}

// For a call that names the GPU, of which a driver asks for no current context. Where that one is
// on another GPU, or there is none, the session lives in the primary context.
CUresult Client::EnsureSessionOn(CUdevice device) {
  if (!has_session()) {
    const LockGuard guard(request_lock_);
    if (state_.load(std::memory_order_acquire) == State::kIdle) {
      // No failure of the session, which may still begin on the right one.
      if (OnAnotherGpu(device)) return CUDA_ERROR_NOT_SUPPORTED;
      CUdevice current = kNoDevice;
      const bool here = driver_->cuCtxGetDevice(&current) == CUDA_SUCCESS && current == device;
      const CUresult result = here ? BeginSession(device) : BeginInPrimary(device);
      if (result != CUDA_SUCCESS) return result;
    }
    if (!has_session()) return CUDA_ERROR_OUT_OF_MEMORY;
  }
  return device == session_.device() ? CUDA_SUCCESS : RefuseDevice(device);
}

// In the current context, which is on that GPU. request_lock_ is held.
CUresult Client::BeginSession(CUdevice device) {
  opening_.store(true);
  CUresult result = OpenSession(device);
  if (result == CUDA_SUCCESS) {
    result = DeclareOutside();
    if (result != CUDA_SUCCESS) CloseSessionLocked(true);
  }
  // Only now do others find a session.
  if (result == CUDA_SUCCESS) StartSession();
  opening_.store(false);
  return result;
}

// request_lock_ is held. The library's reference keeps the context as long as the session may need
// it: until the program gives back its last one or resets it, or the process ends.
CUresult Client::BeginInPrimary(CUdevice device) {
  const RelaxedCapture relaxed(*driver_);
  CUcontext primary = nullptr;
  CUresult result = HoldPrimary(device, &primary);
  if (result != CUDA_SUCCESS) return result;
  result = driver_->cuCtxPushCurrent_v2(primary);
  if (result == CUDA_SUCCESS) {
    result = BeginSession(device);
    CUcontext popped = nullptr;
    static_cast<void>(driver_->cuCtxPopCurrent_v2(&popped));
  }
  if (result != CUDA_SUCCESS) LetGoOfPrimary();
  return result;
}

bool Client::IsDevice(CUdevice device) const {
  int count = 0;
  return driver_->cuDeviceGetCount == nullptr ||
         (driver_->cuDeviceGetCount(&count) == CUDA_SUCCESS && device >= 0 && device < count);
}

CUresult Client::RefuseDevice(CUdevice device) const {
  Line()
      .Text("the job's memory is on device ")
      .Number(static_cast<uint64_t>(session_.device()))
      .Text("; allocations on device ")
      .Number(static_cast<uint64_t>(device))
      .Text(" are not supported")
      .PrintOnce();
  return CUDA_ERROR_NOT_SUPPORTED;
}

// Asked only where there is a choice: else the daemon refuses the session, for good.
bool Client::OnAnotherGpu(CUdevice device) {
  int count = 0;
  if (driver_->cuDeviceGetCount == nullptr || driver_->cuDeviceGetCount(&count) != CUDA_SUCCESS ||
      count < 2) {
    return false;
  }
  protocol::Told told;
  if (!report_.Ask(socket_path_, &told) || IsOf(told, device)) return false;
  Line()
      .Text("no GPU memory on device ")
      .Number(static_cast<uint64_t>(device))
      .Text(": the program uses another GPU (its device ")
      .Number(static_cast<uint64_t>(device))
      .Text(") than the one this job was registered for")
      .PrintOnce();
  return true;
}

// The last session of this process ended while no daemon was there.
bool Client::Parted() {
  if (!session_.parting()) return true;
  const bool patient = NowNs() >= next_resume_ns_;
  if (session_.AwaitParted(socket_path_, &resume_frame_, patient ? kPartingMs : 1)) {
    next_resume_ns_ = 0;
    return true;
  }
  if (patient) {
    next_resume_ns_ = NowNs() + kLookAgainNs;
    Line().Text("no GPU memory for this process: the daemon has not come back yet").Print();
  }
  return false;
}

CUresult Client::OpenSession(CUdevice device) {
  if (!Parted()) return CUDA_ERROR_OUT_OF_MEMORY;
  Line why;
  bool ok = session_.Open(*driver_, socket_path_, device, &resume_frame_, why);
  if (ok && gate_ == nullptr) {
    gate_ = static_cast<GateMemory*>(MapMemory(sizeof(GateMemory)));
  }
  if (ok) {
    const auto granules = static_cast<uint32_t>(session_.unit_bytes() >> kGranuleShift);
    ok = gate_ != nullptr && arena_.Init(session_.units(), granules, session_.windows()) &&
         open_releases_.Init(session_.units());
    if (!ok) {
      why.Text("the host is out of memory");
      uint64_t left[protocol::kMaxOutsideFamilies] = {};
      KeepAccount(left);
      static_cast<void>(session_.Close(*driver_, true, left));
    }
  }
  if (!ok) {
    why.Print();
    state_.store(State::kFailed, std::memory_order_release);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  {
    const LockGuard guard(contexts_lock_);
    context_.store(HomeOf(CurrentContext()));
    context_gone_.store(false);
  }
  many_contexts_ = greens_.load(std::memory_order_relaxed) > 0;
  default_pool_ = nullptr;
  if (driver_->cuDeviceGetDefaultMemPool != nullptr) {
    static_cast<void>(driver_->cuDeviceGetDefaultMemPool(&default_pool_, device));
  }
  SelectPool(device);
  streams_.Clear();
  owners_ = {};
  matcher_ = Matcher();
  credit_.Reset();
  ring_tail_ = 0;
  launch_number_ = 0;
  iteration_ = 0;
  rejected_profile_ = 0;
  used_high_granules_ = 0;
  reserved_high_units_ = 0;
  profile_seq_.store(0, std::memory_order_relaxed);
  stream_generation_.fetch_add(1, std::memory_order_relaxed);
  return CUDA_SUCCESS;
}

void Client::StartSession() {
  standstill_.End();  // what another session has lost is none of this one's
  // The legacy default stream is slot 0: what is allocated without a stream is recorded there.
  uint32_t slot = 0;
  static_cast<void>(SlotOf(CU_STREAM_LEGACY, &slot));
  state_.store(State::kReady, std::memory_order_release);
  const LockGuard guard(send_lock_);
  SendUnsent();
}

// The context that held everything is gone, and with it all GPU work of it. A later allocation
// starts a new session.
void Client::EndSession() {
  const uint64_t start = NowNs();
  Backoff backoff;
  bool acquired = request_lock_.TryAcquire();
  while (!acquired && NowNs() - start < kEndPatienceNs) {
    backoff.Pause();
    acquired = request_lock_.TryAcquire();
  }
  bool away = false;
  if (!acquired) {
    away = state_.load(std::memory_order_acquire) == State::kAway;
    // Another thread waits for the daemon, maybe without end, and a program may be exiting: that
    // thread's context is gone, so it gets no answer. What is held is free with the process.
    for (State from : {State::kReady, State::kAway}) {
      state_.compare_exchange_strong(from, State::kLost, std::memory_order_acq_rel);
    }
    session_.GiveUp();
    request_lock_.Acquire();
  }
  EndSessionLocked(away);
  request_lock_.Release();
}

// `away`: no daemon was there when somebody who waited for it was sent home.
void Client::EndSessionLocked(bool away) {
  const State state = state_.load(std::memory_order_acquire);
  if (state != State::kReady && state != State::kAway && state != State::kLost) return;
  const bool idle = !many_contexts_ || SynchroniseContexts(false);
  if (pool_blocks_.load(std::memory_order_relaxed) != 0) ForgetPoolBlocks();
  const bool unmapped = EndLeased(idle);
  const bool clean = unmapped && idle;
  if (state == State::kReady && clean) {
    {
      const LockGuard inner(state_lock_);
      arena_.Abandon();
      // Marks that were queued may have been dropped with the context. What they would have said is
      // true now: no work of this process is left, and fences that are on their way may be reached.
      for (uint32_t slot = 0; slot < streams_.used(); ++slot) {
        session_.marks().mark[slot].store(streams_.queued()[slot], std::memory_order_release);
      }
    }
    // Before anybody else may have it: work that another context begins even now finds nothing
    // here.
    session_.UnmapArena(*driver_);
    while (ReleaseUnits(~0u) > 0) {
    }
  }
  if (clean) LeaveAccount();
  if (state == State::kReady && clean) {
    const LockGuard sending(send_lock_);
    SendUnsent(true);
  }
  // Nobody is there who could keep it.
  if (state == State::kLost) ForgetAccount();
  away = away || state_.load(std::memory_order_acquire) == State::kAway;
  if (away || session_.may_return()) {
    // What is left is declared to the next daemon, not what changed.
    const LockGuard guard(outside_lock_);
    for (uint64_t& unsent : unsent_) unsent = 0;
  }
  state_.store(State::kIdle, std::memory_order_release);
  const bool heard = CloseSessionLocked(clean);
  // Nothing is mapped any more: the next daemon may lend all of it as soon as it is there.
  next_resume_ns_ = 0;
  if (away || (!heard && state == State::kReady)) session_.Part(socket_path_, &resume_frame_);
}

bool Client::CloseSessionLocked(bool clean) {
  uint64_t left[protocol::kMaxOutsideFamilies] = {};
  KeepAccount(left);
  pools_charged_.store(0);
  graphs_charged_.store(0);
  {
    const LockGuard inner(state_lock_);
    gate_->timer.Forget();
    gate_->functions.Forget();
    gate_->lifetimes.Forget();
    gate_->gave_back = false;
    matcher_ = Matcher();
    arena_.FreeMemory();
    open_releases_.FreeMemory();
    stream_generation_.fetch_add(1, std::memory_order_relaxed);
  }
  return session_.Close(*driver_, clean, left);
}

void Client::MarkLost(const char* reason) {
  State ready = State::kReady;
  if (session_.may_return()) {
    state_.compare_exchange_strong(ready, State::kAway, std::memory_order_acq_rel);
    return;
  }
  State away = State::kAway;
  if (!state_.compare_exchange_strong(ready, State::kLost, std::memory_order_acq_rel) &&
      !state_.compare_exchange_strong(away, State::kLost, std::memory_order_acq_rel)) {
    return;
  }
  session_.Abandon();
  uint64_t held = 0;
  {
    const LockGuard guard(state_lock_);
    held = arena_.held_units() * session_.unit_bytes();
  }
  Line()
      .Text("lost the daemon (")
      .Text(reason)
      .Text("): this job keeps its ")
      .Bytes(held)
      .Text(" and gets no more")
      .Print();
}

void Client::PublishHeld() {
  protocol::ClientPage& page = session_.client_page();
  const uint32_t held = arena_.held_units();
  if (held > reserved_high_units_) reserved_high_units_ = held;
  streams_.SetHeld(held * session_.unit_bytes());
  page.held_bytes.store(held * session_.unit_bytes(), std::memory_order_relaxed);
}

bool Client::ApplyPending() {
  const LockGuard guard(state_lock_);
  arena_.FillFromHighEnd(session_.high_end());
  const bool applied =
      session_.TakePending([this](const protocol::Extent& extent) { return arena_.Grant(extent); });
  PublishHeld();
  return applied;
}

Answer::Kind Client::Request(protocol::Header* header, Answer* answer, bool keeps) {
  while (true) {
    header->seq = session_.NextSeq();
    if (session_.Send(header) != nullptr)
      session_.Abandon();  // a last word may still be in the queue
    send_lock_.Release();
    // It waits for others, who may wait for what is free here.
    const bool lease = header->type == static_cast<uint16_t>(FrameType::kLease);
    if (lease && !keeps && Pressure() && !session_.Hears(kSoonMs)) ReleaseExcess(true);
    session_.Await(header->seq, answer);
    while (answer->kind == Answer::kQuiesce) {
      StandStill(header->seq);
      session_.Await(header->seq, answer);
    }
    if (answer->kind == Answer::kGranted && !ApplyPending()) {
      answer->kind = Answer::kLost;
      memcpy(answer->text, "it granted what we hold", sizeof("it granted what we hold"));
    }
    if (answer->kind != Answer::kLost) {
      if (standstill_.still()) standstill_.End();
      return answer->kind;
    }
    MarkLost(answer->text);
    // The daemon that comes back knows nothing of this request.
    if (state_.load(std::memory_order_acquire) != State::kAway || !Resume()) {
      // Nobody can tell whether it had been moved.
      if (standstill_.still()) LoseMemory();
      return answer->kind;
    }
    // All that was declared as held is there.
    if (standstill_.still()) standstill_.End();
    send_lock_.Acquire();
  }
}

void Client::SendMismatch(uint32_t profile) {
  if (state_.load(std::memory_order_acquire) != State::kReady) return;
  protocol::Mismatch frame{};
  frame.header = MakeHeader(FrameType::kMismatch, sizeof frame, 0);
  frame.profile = profile;
  frame.reason = static_cast<uint32_t>(protocol::MismatchReason::kSequence);
  const LockGuard guard(send_lock_);
  if (const char* error = session_.Send(&frame.header)) MarkLost(error);
}

// One frame's worth of wholly free units whose frees are reached or marked, but for the place that
// a block of `spared_granules` of the pacing stream would be put in. Returns how many.
uint32_t Client::ReleaseUnits(uint32_t max_units, uint32_t max_terms, uint32_t spared_granules) {
  const State state = state_.load(std::memory_order_acquire);
  if (state != State::kReady || max_units == 0) return 0;
  const LockGuard guard(send_lock_);
  SendUnsent();
  // The daemon has been told what is there to be moved.
  if (standstill_.still()) return 0;
  {
    const LockGuard inner(state_lock_);
    if (!open_releases_.HasRoom(session_.marks())) return 0;
    protocol::Extent spared{0, 0};
    if (spared_granules > 0 && matcher_.following())
      spared = arena_.PlaceFor(spared_granules, matcher_.profile()->pacing_slot);
    arena_.TakeFreeUnits(max_units, max_terms, streams_.queued(), session_.marks(), &release_,
                         spared);
    open_releases_.Add(release_);
    PublishHeld();
  }
  if (release_.units == 0) return 0;
  const size_t bytes =
      offsetof(protocol::Release, extent) + release_.extents * sizeof(protocol::Extent);
  release_frame_.header = MakeHeader(FrameType::kRelease, bytes, 0);
  release_frame_.terms = release_.terms;
  release_frame_.extents = release_.extents;
  memcpy(release_frame_.fence, release_.fence, sizeof release_frame_.fence);
  memcpy(release_frame_.extent, release_.extent, release_.extents * sizeof(protocol::Extent));
  if (const char* error = session_.Send(&release_frame_.header)) MarkLost(error);
  return release_.units;
}

}  // namespace sluice
