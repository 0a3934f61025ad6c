// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/keeper/server.h"

#include <poll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace sluice::keeper {
namespace {

/// Whoever starts a keeper connects at once.
constexpr int64_t kFirstMs = 10'000;

bool SameUser(int socket) {
  ucred credentials = {};
  socklen_t length = sizeof credentials;
  return ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &length) == 0 &&
         credentials.uid == ::geteuid();
}

size_t TakeFds(msghdr* message, int* fds) {
  size_t count = 0;
  for (cmsghdr* part = CMSG_FIRSTHDR(message); part != nullptr; part = CMSG_NXTHDR(message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const size_t came = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < came; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(part) + i * sizeof fd, sizeof fd);
      if (count < kMaxFds) {
        fds[count++] = fd;
      } else {
        ::close(fd);
      }
    }
  }
  return count;
}

}  // namespace

int64_t NowMs() {
  timespec now = {};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

bool Server::over(int64_t now_ms) {
  if (said_goodbye_) return true;
  if (daemon_.valid()) {
    alone_since_ms_ = -1;
    return false;
  }
  // From the last moment at which anybody was there.
  if (table_.SomebodyLives()) {
    alone_since_ms_ = now_ms;
    return false;
  }
  if (alone_since_ms_ < 0) alone_since_ms_ = now_ms;
  return now_ms - alone_since_ms_ >= (had_daemon_ ? linger_ms_ : std::max(linger_ms_, kFirstMs));
}

bool Server::RunOnce(int64_t now_ms, int longest_wait_ms) {
  if (over(now_ms)) return false;
  pollfd wait[2] = {{listener_.get(), POLLIN, 0}, {daemon_.get(), POLLIN, 0}};
  // A hung-up pipe would wake us all the time, so the living are looked for now and then.
  const int ready = ::poll(wait, daemon_.valid() ? 2 : 1, longest_wait_ms);
  if (ready <= 0) return true;
  if (daemon_.valid() && wait[1].revents != 0 && !Serve()) daemon_.reset();
  if ((wait[0].revents & POLLIN) != 0) Accept();
  return !said_goodbye_;
}

void Server::Accept() {
  UniqueFd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  // One daemon at a time: the lock of the folder says which one that is. The hang-up of the last
  // one may come behind the call of the next.
  if (!socket.valid() || !SameUser(socket.get())) return;
  if (daemon_.valid()) {
    pollfd last = {daemon_.get(), POLLIN, 0};
    char byte = 0;
    const bool gone =
        ::poll(&last, 1, 0) == 1 && ::recv(daemon_.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) <= 0;
    if (!gone) return;
  }
  daemon_ = std::move(socket);
  had_daemon_ = true;
}

bool Server::Serve() {
  Request request = {};
  iovec data = {&request, sizeof request};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kMaxFds)];
  msghdr message = {};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const ssize_t count = ::recvmsg(daemon_.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (count < 0 && (errno == EINTR || errno == EAGAIN)) return true;
  int fds[kMaxFds];
  const size_t came = count < 0 ? 0 : TakeFds(&message, fds);
  const bool whole = count == sizeof request && (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0;
  if (!whole || request.magic != kMagic) {
    for (size_t i = 0; i < came; ++i) ::close(fds[i]);
    return false;
  }
  return Answer(request, Do(request, fds, came));
}

Outcome Server::Do(const Request& request, int* fds, size_t fd_count) {
  const bool stores = request.op == Op::kStore;
  const bool bounded = request.count <= kMaxFds && request.key.index <= kMaxItems;
  if (request.version != kVersion || !bounded || fd_count != (stores ? request.count : 0)) {
    for (size_t i = 0; i < fd_count; ++i) ::close(fds[i]);
    return Outcome::kBadRequest;
  }
  reply_.count = 0;
  switch (request.op) {
    case Op::kStore:
      return table_.Store(request.key, fds, fd_count) ? Outcome::kDone : Outcome::kFull;
    case Op::kDrop:
      table_.Drop(request.key.kind, request.key.id);
      return Outcome::kDone;
    case Op::kList:
      for (size_t at = request.key.index; at < table_.size() && reply_.count < kMaxEntries; ++at) {
        reply_.entry[reply_.count++] = table_.key(at);
      }
      return Outcome::kDone;
    case Op::kTake:
      for (uint32_t i = 0; i < request.count; ++i) {
        if (table_.Find({request.key.kind, request.key.id, request.key.index + i}) < 0) {
          return Outcome::kNotFound;
        }
      }
      reply_.count = request.count;
      return Outcome::kDone;
    case Op::kBye:
      said_goodbye_ = true;
      return Outcome::kDone;
  }
  return Outcome::kBadRequest;
}

bool Server::Answer(const Request& request, Outcome outcome) {
  reply_.magic = kMagic;
  reply_.version = kVersion;
  reply_.op = request.op;
  reply_.outcome = outcome;
  if (outcome != Outcome::kDone) reply_.count = 0;
  const size_t entries = request.op == Op::kList ? reply_.count : 0;
  iovec data = {&reply_, offsetof(Reply, entry) + entries * sizeof(Key)};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kMaxFds)];
  msghdr message = {};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  if (request.op == Op::kTake && reply_.count > 0) {
    std::memset(control, 0, sizeof control);
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(sizeof(int) * reply_.count);
    cmsghdr* part = CMSG_FIRSTHDR(&message);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(sizeof(int) * reply_.count);
    for (uint32_t i = 0; i < reply_.count; ++i) {
      const int fd = table_.Find({request.key.kind, request.key.id, request.key.index + i});
      std::memcpy(CMSG_DATA(part) + i * sizeof fd, &fd, sizeof fd);
    }
  }
  ssize_t sent = -1;
  do {
    // A daemon that asks and does not read is taken for dead.
    sent = ::sendmsg(daemon_.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  // One that has hung up may have said more before that.
  return sent >= 0 || errno == EPIPE;
}

}  // namespace sluice::keeper
