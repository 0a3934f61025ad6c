// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "intercept/base/line.h"
#include "intercept/session/client.h"

namespace sluice {

// The daemon wants to move memory of this job while one of its threads waits for it (I5). That
// thread makes the others stand still, waits for the GPU, and says so. Nobody waits for it
// meanwhile but who would issue work; frees, events and questions to the driver go on.

using protocol::QuietReason;

namespace {

// For threads that are in the middle of a call: most take microseconds, one that copies to pageable
// memory takes as long as the copy.
constexpr uint64_t kOthersNs = 1'000'000'000;

}  // namespace

// request_lock_ is held.
void Client::StandStill(uint32_t seq) {
  standstill_.Begin();
  protocol::Quiet frame{};
  frame.header = MakeHeader(protocol::FrameType::kQuiet, sizeof frame, seq);
  const QuietReason reason = BecomeQuiet();
  frame.reason = static_cast<uint32_t>(reason);
  // Nothing is moved: the others need not wait for the answer.
  if (reason != QuietReason::kQuiet) standstill_.End();
  const LockGuard guard(send_lock_);
  // A daemon that is gone shows in the answer.
  static_cast<void>(session_.Send(&frame.header));
}

QuietReason Client::BecomeQuiet() {
  if (settings_.poison) return QuietReason::kDebugging;
  if (open_captures() != 0) return QuietReason::kCapturing;
  if (!standstill_.AwaitOthers(kOthersNs)) return QuietReason::kBusy;
  {
    const LockGuard guard(state_lock_);
    // Beyond these there may be some without a slot, and no mark to wait for.
    if (streams_.used() >= StreamTable::kSlots) return QuietReason::kBusy;
    // Every one is marked, whatever was issued on it: its work may wait for a thread that is held
    // here (a host function), so it is waited for with a bound, as a whole context could not be.
    for (uint32_t slot = 0; slot < streams_.used(); ++slot) {
      if (streams_[slot].active) streams_[slot].dirty = true;
    }
  }
  if (Drain()) return QuietReason::kQuiet;
  return open_captures() != 0 ? QuietReason::kCapturing : QuietReason::kBusy;
}

void Client::LoseMemory() {
  standstill_.Lose();
  Line()
      .Text(
          "the daemon went while memory of this job was on its way to host memory: it is lost, and "
          "all further work is refused as out of memory")
      .Print();
}

}  // namespace sluice
