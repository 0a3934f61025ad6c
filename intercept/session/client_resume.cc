// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <errno.h>

#include "intercept/base/line.h"
#include "intercept/session/client.h"

namespace sluice {

// The daemon died, and another one takes its place. What this process holds stays its own all the
// time; nothing is given back and nothing is added until the new daemon knows what that is.

using protocol::ResumePart;

namespace {

// How long whoever needs the daemon waits for it; then the job goes on without, and the next one
// who needs it looks again after a while, without waiting.
constexpr uint64_t kPatienceNs = 30'000'000'000;
constexpr uint64_t kLookAgainNs = 10'000'000'000;
constexpr uint64_t kLookMs = 1;
constexpr uint64_t kNoticeMs = 1'000;

}  // namespace

// Whether there is a daemon to talk to; waits for one that died (at most kPatienceNs).
bool Client::Present() {
  if (state_.load(std::memory_order_acquire) == State::kReady &&
      session_.client_page().resume_wanted.load(std::memory_order_relaxed) == 0) {
    return true;
  }
  const LockGuard guard(request_lock_);
  return Resume();
}

// request_lock_ is held: nobody asks, and nothing is granted.
bool Client::Resume() {
  const ErrnoKeeper keeper;
  const State state = state_.load(std::memory_order_acquire);
  // Without a session there are no pages: it may have ended while we waited for the lock.
  if (state != State::kReady && state != State::kAway) return false;
  const bool called = session_.client_page().resume_wanted.load(std::memory_order_acquire) != 0;
  // Somebody else has been here while we waited for the lock.
  if (state == State::kReady && !called) return true;
  const uint64_t start = NowNs();
  const bool patient = called || start >= next_resume_ns_;
  State ready = State::kReady;
  state_.compare_exchange_strong(ready, State::kAway, std::memory_order_acq_rel);

  // Whoever found the daemon gone may have been sending, and not have heard its last word.
  if (!session_.declared() && session_.SentAway()) {
    MarkLost(session_.refusal());
    return false;
  }
  const char* error = nullptr;  // of connecting
  bool said = false;
  Backoff backoff;
  while (true) {
    if (!session_.declared()) {
      // Nobody takes units out of the arena meanwhile.
      const LockGuard sending(send_lock_);
      declared_rejected_ = RejectedProfile();
      error = session_.Reconnect(socket_path_);
      if (error != nullptr && error != FrameSocket::kFull) break;
      if (error == nullptr) static_cast<void>(Declare(declared_rejected_));  // shows in the answer
    }
    // The socket is kept, and those who asked before fill its queue: there is room when a daemon
    // is.
    if (error != nullptr) SleepNs(kLookMs * 1'000'000);
    switch (error != nullptr ? Session::Return::kNotYet
                             : session_.AwaitResumed(patient ? kNoticeMs : kLookMs)) {
      case Session::Return::kBack:
        return Returned(said, declared_rejected_);
      case Session::Return::kRefused:
        MarkLost(session_.refusal());
        return false;
      case Session::Return::kGoneAgain:
        backoff.Pause();
        break;
      case Session::Return::kNotYet:
        break;
    }
    if (!patient || NowNs() - start > kPatienceNs) {
      if (patient) next_resume_ns_ = NowNs() + kLookAgainNs;
      if (said) Line().Text("the daemon has not come back: going on without it").Print();
      return false;
    }
    if (!said && NowNs() - start >= kNoticeMs * 1'000'000) {
      said = true;
      Line().Text("the daemon is gone: waiting for it to come back").Print();
    }
  }
  // Nobody keeps this job's socket for another daemon.
  session_.GiveUp();
  MarkLost("it is gone");
  return false;
}

// Fills the frame with runs of units from `*unit` on; true when it is full before the last one.
// What is held does not change (request_lock_ and send_lock_), but what is free inside of it does.
bool Client::FillPart(ResumePart part, uint32_t* unit) {
  const LockGuard guard(state_lock_);
  const auto chosen = [&](uint32_t at) {
    if (arena_.Holds(at)) return part == ResumePart::kHeld;
    return part == ResumePart::kReleased && open_releases_.IsOpen(at, session_.marks());
  };
  const uint32_t units = session_.units();
  while (*unit < units && resume_frame_.count < protocol::kMaxExtentsPerFrame) {
    if (!chosen(*unit)) {
      ++*unit;
      continue;
    }
    protocol::Extent extent{*unit, 0};
    for (; *unit < units && chosen(*unit); ++*unit) ++extent.length;
    resume_frame_.extent[resume_frame_.count++] = extent;
  }
  return *unit < units;
}

// request_lock_ and send_lock_ are held; while something is sent none that a free needs.
const char* Client::Declare(uint32_t rejected) {
  session_.BeginDeclaration(rejected, &resume_frame_);
  {
    const LockGuard guard(outside_lock_);
    for (size_t family = 0; family < protocol::kMaxOutsideFamilies; ++family) {
      resume_frame_.outside_bytes[family] = charged_[family];
      unsent_[family] = 0;  // what changes from here on is said when the daemon has answered
    }
  }
  for (size_t i = 0; i < kCountedFamilies; ++i) {
    const size_t family = static_cast<size_t>(protocol::Family::kImported) + i;
    const uint64_t count = counted_[i].load(std::memory_order_relaxed);
    if (family < protocol::kFirstUnseenFamily) {
      resume_frame_.outside_bytes[family] = count;
    } else if (count > 0) {
      // Said afterwards, to a daemon that is known to know it.
      const LockGuard guard(outside_lock_);
      unsent_[family] = 1;
    }
  }
  for (const ResumePart part : {ResumePart::kHeld, ResumePart::kReleased}) {
    uint32_t unit = 0;
    for (bool more = true; more;) {
      resume_frame_.part = part;
      resume_frame_.count = 0;
      more = FillPart(part, &unit);
      if (const char* error = session_.SendPart(&resume_frame_, false)) return error;
    }
  }
  // After the extents: what was open then is covered, or reached by now.
  resume_frame_.part = ResumePart::kFence;
  {
    const LockGuard guard(state_lock_);
    resume_frame_.count = open_releases_.Fence(session_.marks(), resume_frame_.term);
  }
  return session_.SendPart(&resume_frame_, true);
}

uint32_t Client::RejectedProfile() {
  const LockGuard guard(state_lock_);
  return rejected_profile_;
}

bool Client::Returned(bool said, uint32_t rejected) {
  session_.SayBack(said);
  next_resume_ns_ = 0;
  State away = State::kAway;
  if (!state_.compare_exchange_strong(away, State::kReady, std::memory_order_acq_rel)) return false;
  {
    const LockGuard sending(send_lock_);
    SendUnsent();
  }
  const uint32_t now = RejectedProfile();
  if (now != rejected && now != 0) SendMismatch(now);
  return true;
}

}  // namespace sluice
