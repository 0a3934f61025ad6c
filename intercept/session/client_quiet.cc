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
  // Marks first: they are waited for in vain no longer than is bearable. Then what has none, as
  // streams beyond those that have a slot.
  if (!Drain() || !SynchroniseContexts(true)) {
    return open_captures() != 0 ? QuietReason::kCapturing : QuietReason::kBusy;
  }
  return QuietReason::kQuiet;
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
