// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "intercept/session/frame_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "common/peer/connect.h"
#include "intercept/base/line.h"
#include "intercept/base/system.h"

namespace sluice {
namespace {

// A daemon that does not take a frame for this long is taken for dead.
constexpr time_t kSendTimeoutS = 30;

// Raw, because libc's own are cancellation points: a thread cancelled inside would leave its locks.
// ThreadSanitizer sees the order that a socket gives only through libc's.
#if defined(__SANITIZE_THREAD__)
int64_t SendTo(int fd, const void* bytes, size_t count, int flags) {
  return send(fd, bytes, count, MSG_NOSIGNAL | flags);
}
int64_t ReceiveFrom(int fd, msghdr* message) { return recvmsg(fd, message, MSG_CMSG_CLOEXEC); }
#else
int64_t SendTo(int fd, const void* bytes, size_t count, int flags) {
  return syscall(SYS_sendto, fd, bytes, count, MSG_NOSIGNAL | flags, nullptr, 0);
}
int64_t ReceiveFrom(int fd, msghdr* message) {
  return syscall(SYS_recvmsg, fd, message, MSG_CMSG_CLOEXEC);
}
#endif

}  // namespace

#if defined(__SANITIZE_THREAD__)
void CloseFd(int fd) { close(fd); }
#else
void CloseFd(int fd) { syscall(SYS_close, fd); }
#endif

void FrameFds::CloseAll() {
  const ErrnoKeeper keeper;
  for (size_t i = 0; i < count; ++i) CloseFd(fd[i]);
  count = 0;
}

const char FrameSocket::kFull[] = "the daemon does not answer";
const char FrameSocket::kNobody[] = "nobody listens there";
const char FrameSocket::kSilent[] = "it does not answer";
const char FrameSocket::kNotTaken[] = "it does not take our frames";

const char* FrameSocket::Open(const char* path, bool wait, int* opened) {
  if (path[0] == 0) return "SLUICE_SOCKET names no socket; `sluice run` sets it";
  int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | (wait ? 0 : SOCK_NONBLOCK), 0);
  if (fd >= 0 && fd <= STDERR_FILENO) {
    // The program closed a standard file; what it prints there must not go to the daemon.
    const int moved = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    CloseFd(fd);
    fd = moved;
  }
  if (fd < 0) return "no descriptor left";
  const timeval timeout{kSendTimeoutS, 0};
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout);
  const peer::Outcome outcome = peer::Connect(fd, path, peer::Reach::kAnybody);
  if (!outcome.ok()) {
    CloseFd(fd);
    const int error = outcome.error;
    if (outcome.verdict != peer::Verdict::kTrusted) {
      // Not all that connect have a person to tell why.
      if (!wait) Line().Text(path).Text(": ").Text(peer::Why(outcome.verdict)).PrintOnce();
      return peer::Why(outcome.verdict);
    }
    if (error == ENAMETOOLONG) return "the path is too long for a socket";
    if (error == ENOENT) return "there is no such socket";
    if (error == ECONNREFUSED) return kNobody;
    if (error == EACCES || error == EPERM) return "permission denied";
    return error == EAGAIN ? kFull : "the connection failed";
  }
  // Only connecting must not wait.
  if (!wait) fcntl(fd, F_SETFL, 0);
  *opened = fd;
  return nullptr;
}

const char* FrameSocket::Connect(const char* path) {
  const ErrnoKeeper keeper;
  hung_up_.store(false, std::memory_order_relaxed);
  return Open(path, true, &fd_);
}

const char* FrameSocket::ConnectNow(const char* path) {
  const ErrnoKeeper keeper;
  hung_up_.store(false, std::memory_order_relaxed);
  return Open(path, false, &fd_);
}

const char* FrameSocket::Reconnect(const char* path) {
  const ErrnoKeeper keeper;
  int fd = 0;
  if (const char* error = Open(path, false, &fd)) return error;
  const int64_t replaced = syscall(SYS_dup3, fd, fd_, O_CLOEXEC);
  CloseFd(fd);
  if (replaced < 0) return "no descriptor left";
  hung_up_.store(false, std::memory_order_relaxed);
  return nullptr;
}

const char* FrameSocket::SendWith(const protocol::Header* header, int flags) {
  const ErrnoKeeper keeper;
  int64_t sent = 0;
  do {
    sent = SendTo(fd_, header, header->bytes, flags);
  } while (sent < 0 && errno == EINTR);
  if (sent == static_cast<int64_t>(header->bytes)) return nullptr;
  if (sent < 0 && errno != EAGAIN) hung_up_.store(true, std::memory_order_relaxed);
  return errno == EAGAIN ? kNotTaken : "it is gone";
}

const char* FrameSocket::SendNow(const protocol::Header* header) {
  return SendWith(header, MSG_DONTWAIT);
}

bool FrameSocket::TrySend(const protocol::Header* header) {
  const ErrnoKeeper keeper;
  int64_t sent = 0;
  do {
    sent = SendTo(fd_, header, header->bytes, MSG_DONTWAIT);
  } while (sent < 0 && errno == EINTR);
  return sent == static_cast<int64_t>(header->bytes);
}

// What ppoll said last: above 0 there is something, 0 the time is over.
int64_t FrameSocket::Poll(short events, uint64_t timeout_ms) {  // NOLINT: as in pollfd
  const uint64_t deadline = timeout_ms == kForever ? 0 : NowNs() + timeout_ms * 1'000'000;
  while (true) {
    timespec left{};
    const uint64_t now = deadline == 0 ? 0 : NowNs();
    if (deadline != 0 && now < deadline) {
      left.tv_sec = static_cast<time_t>((deadline - now) / 1'000'000'000);
      left.tv_nsec = static_cast<long>((deadline - now) % 1'000'000'000);  // NOLINT
    }
    pollfd wait{fd_, events, 0};
    const int64_t ready =
        syscall(SYS_ppoll, &wait, 1, deadline == 0 ? nullptr : &left, nullptr, size_t{8});
    if (ready >= 0 || errno != EINTR) return ready;
  }
}

bool FrameSocket::Hears(uint64_t timeout_ms) {
  const ErrnoKeeper keeper;
  return Poll(POLLIN, timeout_ms) != 0;
}

void FrameSocket::AwaitRoom(uint64_t timeout_ms) {
  const ErrnoKeeper keeper;
  static_cast<void>(Poll(POLLOUT, timeout_ms));
}

const char* FrameSocket::Receive(Frame* frame, FrameFds* fds, uint64_t timeout_ms) {
  const ErrnoKeeper keeper;
  fds->count = 0;
  const int64_t ready = Poll(POLLIN, timeout_ms);
  if (ready == 0) return kSilent;
  if (ready < 0) return "waiting for it failed";
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * protocol::kMaxFdsPerFrame)];
  iovec part{frame, sizeof(Frame)};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  int64_t got = 0;
  do {
    got = ReceiveFrom(fd_, &message);
    // Reset: it hung up without reading all of ours. Its last words come after that, and its end.
  } while (got < 0 && (errno == EINTR || errno == ECONNRESET));
  if (got < 0) {
    hung_up_.store(true, std::memory_order_relaxed);
    return "it is gone";
  }
  // Descriptors first: whatever else is wrong, they must not leak.
  for (cmsghdr* part_of = CMSG_FIRSTHDR(&message); part_of != nullptr;
       part_of = CMSG_NXTHDR(&message, part_of)) {
    if (part_of->cmsg_level != SOL_SOCKET || part_of->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (part_of->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd = -1;
      memcpy(&fd, CMSG_DATA(part_of) + i * sizeof(int), sizeof fd);
      if (fds->count < protocol::kMaxFdsPerFrame) {
        fds->fd[fds->count++] = fd;
      } else {
        CloseFd(fd);
      }
    }
  }
  const char* error = nullptr;
  if (got == 0) {
    hung_up_.store(true, std::memory_order_relaxed);
    error = "it is gone";
  } else if ((message.msg_flags & MSG_TRUNC) != 0) {
    error = "it sent a frame that is too long";
  } else if ((message.msg_flags & MSG_CTRUNC) != 0) {
    error = "no descriptors are left in this process for the pool's memory (see ulimit -n)";
  } else {
    error = CheckFrame(*frame, static_cast<size_t>(got), fds->count);
  }
  if (error != nullptr) fds->CloseAll();
  return error;
}

void FrameSocket::Shutdown() {
  const ErrnoKeeper keeper;
  if (fd_ > 0) shutdown(fd_, SHUT_RDWR);
}

void FrameSocket::Close() {
  const ErrnoKeeper keeper;
  if (fd_ > 0) CloseFd(fd_);
  fd_ = 0;
}

}  // namespace sluice
