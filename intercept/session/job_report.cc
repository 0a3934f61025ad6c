// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "intercept/session/job_report.h"

#include "intercept/base/system.h"
#include "intercept/session/frame_socket.h"

namespace sluice {

bool JobReport::Ask(const char* path, protocol::Told* told) {
  constexpr uint64_t kPauseNs = 5'000'000'000;
  if (path == nullptr || path[0] == 0) return false;
  {
    const LockGuard guard(lock_);
    if (NowNs() < ask_again_ns_) {
      *told = last_;
      return known_;
    }
  }
  const bool answered = AskDaemon(path, told);
  const LockGuard guard(lock_);
  if (answered) {
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
bool JobReport::AskDaemon(const char* path, protocol::Told* told) {
  constexpr uint64_t kPatienceMs = 1000;
  const ErrnoKeeper keeper;
  FrameSocket socket;
  if (socket.ConnectNow(path) != nullptr) return false;
  protocol::Ask ask{};
  ask.header = MakeHeader(protocol::FrameType::kAsk, sizeof ask, 0);
  ask.major = protocol::kMajor;
  ask.minor = protocol::kMinor;
  Frame frame;
  FrameFds fds;
  bool answered =
      socket.Send(&ask.header) == nullptr && socket.Receive(&frame, &fds, kPatienceMs) == nullptr;
  if (answered) fds.CloseAll();
  answered = answered && frame.header.type == static_cast<uint16_t>(protocol::FrameType::kTold);
  if (answered) *told = frame.told;
  socket.Close();
  return answered;
}

}  // namespace sluice
