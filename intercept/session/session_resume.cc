// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <string.h>
#include <sys/mman.h>

#include "intercept/session/session.h"

namespace sluice {

// A session that goes on with a daemon that was started anew.

using protocol::FrameType;

const char* Session::Reconnect(const char* path) {
  declared_ = false;
  if (const char* error = socket_.Reconnect(path)) return error;
  // Whoever gave the conversation up has shut the old socket down, or this one.
  if (given_up_.load(std::memory_order_acquire)) {
    socket_.Shutdown();
    return "this process is ending";
  }
  return nullptr;
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

// In the place of the old page and in one step: other threads read it all the time.
bool Session::TakeDaemonPage(int fd) {
  if (!LargeEnough(fd, sizeof(protocol::DaemonPage))) return false;
  void* const at = const_cast<protocol::DaemonPage*>(daemon_);
  return mmap(at, WholePages(sizeof(protocol::DaemonPage)), PROT_READ, MAP_SHARED | MAP_FIXED, fd,
              0) == at;
}

}  // namespace sluice
