// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <string.h>

#include "intercept/session/session.h"

namespace sluice {

// A session that goes on with a daemon that was started anew.

using protocol::FrameType;

const char* Session::Reconnect(const char* path) {
  declared_ = false;
  const char* error = given_up_.load(std::memory_order_acquire) ? "this process is ending"
                                                                : socket_.Reconnect(path);
  if (error != nullptr) return error;
  // Whoever gave the conversation up has shut the old socket down, or this one.
  if (given_up_.load(std::memory_order_acquire)) {
    socket_.Shutdown();
    return "this process is ending";
  }
  return nullptr;
}

bool Session::SentAway() {
  Frame frame;
  FrameFds fds;
  while (socket_.Receive(&frame, &fds, 0) == nullptr) {
    fds.CloseAll();
    if (static_cast<FrameType>(frame.header.type) != FrameType::kClose) continue;
    memcpy(refusal_, frame.close.text, sizeof refusal_);
    dismissed_ = true;
    return true;
  }
  return false;
}

void Session::GiveUp() {
  given_up_.store(true, std::memory_order_release);
  socket_.Shutdown();
}

void Session::BeginDeclaration(uint32_t rejected, protocol::Resume* frame) const {
  memset(static_cast<void*>(frame), 0, offsetof(protocol::Resume, extent));
  frame->major = protocol::kMajor;
  frame->minor = protocol::kMinor;
  frame->session = session_id_;
  frame->epoch = epoch_;
  frame->rejected = rejected;
}

const char* Session::SendPart(protocol::Resume* frame, bool last) {
  const size_t entry = frame->part == protocol::ResumePart::kFence ? sizeof(protocol::FenceTerm)
                                                                   : sizeof(protocol::Extent);
  frame->header =
      MakeHeader(FrameType::kResume, offsetof(protocol::Resume, extent) + frame->count * entry, 0);
  if (last) frame->header.flags = protocol::kLastFrame;
  const char* error = socket_.Send(&frame->header);
  frame->count = 0;
  if (error == nullptr && last) declared_ = true;
  return error;
}

Session::Return Session::AwaitResumed(uint64_t timeout_ms) {
  Frame frame;
  FrameFds fds;
  if (socket_.Receive(&frame, &fds, timeout_ms) != nullptr) {
    if (!socket_.hung_up()) return given_up_.load() ? Return::kRefused : Return::kNotYet;
    declared_ = false;
    return given_up_.load() ? Return::kRefused : Return::kGoneAgain;
  }
  if (static_cast<FrameType>(frame.header.type) == FrameType::kResumed) {
    if (frame.resumed.major != protocol::kMajor) {
      strncpy(refusal_, "the daemon speaks another protocol version now", sizeof refusal_ - 1);
    } else if (!TakeDaemonPage(fds.fd[0])) {
      strncpy(refusal_, "the daemon's new page cannot be mapped", sizeof refusal_ - 1);
    } else {
      fds.CloseAll();
      declared_ = false;
      daemon_minor_ = frame.resumed.minor;
      return Return::kBack;
    }
  } else if (static_cast<FrameType>(frame.header.type) == FrameType::kClose) {
    memcpy(refusal_, frame.close.text, sizeof refusal_);
  } else {
    strncpy(refusal_, "the daemon spoke out of order", sizeof refusal_ - 1);
  }
  fds.CloseAll();
  dismissed_ = true;
  return Return::kRefused;
}

void Session::Part(const char* path, protocol::Resume* scratch) {
  if (!ended_ || socket_.Connect(path) != nullptr) return;
  memset(static_cast<void*>(scratch), 0, offsetof(protocol::Resume, extent));
  scratch->major = protocol::kMajor;
  scratch->minor = protocol::kMinor;
  scratch->session = ended_id_;
  scratch->epoch = ended_epoch_;
  memcpy(scratch->outside_bytes, left_, sizeof left_);
  // Nothing is held and nothing on its way back: what the notebook says otherwise is free.
  for (const protocol::ResumePart part :
       {protocol::ResumePart::kHeld, protocol::ResumePart::kReleased,
        protocol::ResumePart::kFence}) {
    scratch->part = part;
    static_cast<void>(SendPart(scratch, part == protocol::ResumePart::kFence));
  }
  declared_ = false;
  protocol::Bye bye{MakeHeader(FrameType::kBye, sizeof bye, 0)};
  static_cast<void>(Send(&bye.header));
}

bool Session::GiveBack(const char* path, uint32_t family, uint64_t bytes) {
  // A goodbye that nobody has heard says what is left in all.
  if (parting()) return false;
  const ErrnoKeeper keeper;
  FrameSocket socket;
  if (socket.ConnectNow(path) != nullptr) return false;
  protocol::Uncharge frame{};
  frame.header = MakeHeader(FrameType::kUncharge, sizeof frame, 0);
  frame.family = family;
  frame.bytes = bytes;
  const bool said = socket.TrySend(&frame.header);
  socket.Close();
  if (said) left_[family] -= bytes < left_[family] ? bytes : left_[family];
  return said;
}

// Heard is heard, whatever the answer: a daemon that knows of no such session needs no goodbye.
bool Session::AwaitParted(const char* path, protocol::Resume* scratch, uint64_t timeout_ms) {
  const uint64_t deadline = NowNs() + timeout_ms * 1'000'000;
  bool heard = false;
  Backoff backoff;
  while (socket_.open()) {
    Frame frame;
    FrameFds fds;
    const uint64_t now = NowNs();
    const uint64_t left_ms = now < deadline ? (deadline - now) / 1'000'000 : 0;
    if (socket_.Receive(&frame, &fds, left_ms) == nullptr) {
      const auto type = static_cast<FrameType>(frame.header.type);
      heard = heard || type == FrameType::kResumed || type == FrameType::kClose;
      fds.CloseAll();
      continue;  // until it has hung up: then it has read all of it
    }
    if (!socket_.hung_up()) return false;
    socket_.Close();
    if (heard) break;
    // It died in the middle.
    backoff.Pause();
    Part(path, scratch);
  }
  return true;
}

}  // namespace sluice
