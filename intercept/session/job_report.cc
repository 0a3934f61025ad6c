// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "intercept/session/job_report.h"

#include "intercept/base/system.h"
#include "intercept/session/frame_socket.h"

namespace sluice {
namespace {

constexpr uint64_t kPatienceMs = 1000;

}  // namespace

bool JobReport::Ask(const char* path, protocol::Told* told) {
  if (path == nullptr || path[0] == 0) return false;
  if (IsTooSoon(told)) return known_;
  return Keep(AskDaemon(path, told, kPatienceMs), told);
}

bool JobReport::AskFirst(const char* path, protocol::Told* told) {
  constexpr uint64_t kMostMs = 15'000;    // a little longer than the daemon waits for a pod's terms
  constexpr uint64_t kNobodyMs = 10'000;  // one daemon follows another sooner, with its pool
  constexpr uint64_t kPauseNs = 20'000'000;
  if (path == nullptr || path[0] == 0) return false;
  if (IsTooSoon(told)) return known_;
  const uint64_t start = NowNs();
  uint64_t most_ms = 0;
  Heard heard = Heard::kNothing;
  while (true) {
    heard = AskDaemon(path, told, most_ms > kPatienceMs ? most_ms : kPatienceMs);
    if (heard == Heard::kWait) most_ms = kMostMs;
    if (heard == Heard::kNobody && most_ms == 0) most_ms = kNobodyMs;
    const bool away = heard == Heard::kNobody || (heard == Heard::kNoSocket && most_ms > 0);
    const bool again = heard == Heard::kWait || away;
    if (!again || NowNs() - start > most_ms * 1'000'000) break;
    SleepNs(kPauseNs);
  }
  return Keep(heard, told);
}

// Nobody answered a moment ago: `told` is what was said before.
bool JobReport::IsTooSoon(protocol::Told* told) {
  const LockGuard guard(lock_);
  if (NowNs() >= ask_again_ns_) return false;
  *told = last_;
  return true;
}

bool JobReport::Keep(Heard heard, protocol::Told* told) {
  constexpr uint64_t kPauseNs = 5'000'000'000;
  const LockGuard guard(lock_);
  if (heard == Heard::kAnswer) {
    last_ = *told;
    known_ = true;
    ask_again_ns_ = 0;
  } else {
    ask_again_ns_ = NowNs() + kPauseNs;
    *told = last_;
  }
  return known_;
}

// A keeper holds the job's socket open while no daemon is there: who connects is not refused, and
// waits.
JobReport::Heard JobReport::AskDaemon(const char* path, protocol::Told* told,
                                      uint64_t patience_ms) {
  const ErrnoKeeper keeper;
  FrameSocket socket;
  if (const char* error = socket.ConnectNow(path)) {
    return error == FrameSocket::kNobody ? Heard::kNobody : Heard::kNoSocket;
  }
  protocol::Ask ask{};
  ask.header = MakeHeader(protocol::FrameType::kAsk, sizeof ask, 0);
  ask.major = protocol::kMajor;
  ask.minor = protocol::kMinor;
  Frame frame;
  FrameFds fds;
  Heard heard = Heard::kNothing;
  bool received = socket.Send(&ask.header) == nullptr;
  const auto receive = [&] {
    received = received && socket.Receive(&frame, &fds, patience_ms) == nullptr;
    if (received) fds.CloseAll();
  };
  receive();
  if (received && frame.header.type == static_cast<uint16_t>(protocol::FrameType::kNotice)) {
    heard = Heard::kWait;
    receive();
  }
  // It ended before it could answer.
  if (!received && heard == Heard::kNothing && socket.hung_up()) heard = Heard::kNobody;
  if (received && frame.header.type == static_cast<uint16_t>(protocol::FrameType::kTold)) {
    heard = Heard::kAnswer;
    *told = frame.told;
  }
  socket.Close();
  return heard;
}

}  // namespace sluice
