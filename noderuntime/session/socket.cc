// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/session/socket.h"

#include <fcntl.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "intercept/protocol/wire.h"

namespace sluice::session {
namespace {

constexpr int kBacklog = 64;

// One byte more than allowed shows a datagram that is too long. One thread only.
alignas(16) std::byte g_receive_buffer[protocol::kMaxFrameBytes + 1];

}  // namespace

Result<UniqueFd> ListenAt(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    return Status(StatusCode::kInvalidArgument,
                  "socket path " + path + " has " + std::to_string(path.size()) +
                      " characters; allowed: " + std::to_string(sizeof address.sun_path - 1));
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  UniqueFd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.valid()) return Status::FromErrno(errno, "socket");
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return Status::FromErrno(errno, "bind " + path);
  }
  ::chmod(path.c_str(), 0600);
  if (::listen(socket.get(), kBacklog) != 0) return Status::FromErrno(errno, "listen " + path);
  return socket;
}

Acceptor::Acceptor() : spare_(::open("/dev/null", O_RDONLY | O_CLOEXEC)) {}

UniqueFd Acceptor::Accept(int listener) {
  constexpr int kFlags = SOCK_CLOEXEC | SOCK_NONBLOCK;
  UniqueFd socket(::accept4(listener, nullptr, nullptr, kFlags));
  if (socket.valid() || (errno != EMFILE && errno != ENFILE)) return socket;
  spare_.reset();
  socket.reset(::accept4(listener, nullptr, nullptr, kFlags));
  socket.reset();
  spare_.reset(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  return socket;
}

Connection::Read Connection::Receive(std::span<const std::byte>* frame) {
  iovec data = {g_receive_buffer, sizeof g_receive_buffer};
  // Room for a sender and, because he comes first, for nothing else: the kernel closes descriptors
  // that come along.
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(ucred))];
  msghdr message = {};
  ssize_t count = 0;
  do {
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = names_senders_ ? control : nullptr;
    message.msg_controllen = names_senders_ ? sizeof control : 0;
    count = ::recvmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    // Reset: the peer has hung up without reading all that it was sent. What it said itself comes
    // after that, and its end after that.
  } while (count < 0 && (errno == EINTR || errno == ECONNRESET));
  sender_ = 0;
  if (count < 0) {
    return errno == EAGAIN || errno == EWOULDBLOCK ? Read::kNothing : Read::kEnd;
  }
  // An empty datagram and the end look alike; no frame is empty.
  if (count == 0) return Read::kEnd;
  *frame = {g_receive_buffer, static_cast<size_t>(count)};
  const cmsghdr* part = CMSG_FIRSTHDR(&message);
  if (part != nullptr && part->cmsg_level == SOL_SOCKET && part->cmsg_type == SCM_CREDENTIALS &&
      part->cmsg_len == CMSG_LEN(sizeof(ucred))) {
    ucred credentials;
    std::memcpy(&credentials, CMSG_DATA(part), sizeof credentials);
    sender_ = credentials.pid;
  }
  return Read::kFrame;
}

Status Connection::AskForSenders() {
  const int on = 1;
  if (::setsockopt(socket_.get(), SOL_SOCKET, SO_PASSCRED, &on, sizeof on) != 0) {
    return Status::FromErrno(errno, "senders of frames");
  }
  names_senders_ = true;
  return {};
}

Connection::Sent Connection::TrySend(std::span<const std::byte> frame, std::span<const int> fds) {
  iovec data = {const_cast<std::byte*>(frame.data()), frame.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * protocol::kMaxFdsPerFrame)];
  msghdr message = {};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  if (!fds.empty()) {
    std::memset(control, 0, sizeof control);
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(fds.size_bytes());
    cmsghdr* part = CMSG_FIRSTHDR(&message);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(fds.size_bytes());
    std::memcpy(CMSG_DATA(part), fds.data(), fds.size_bytes());
  }
  ssize_t count = 0;
  do {
    count = ::sendmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
  } while (count < 0 && errno == EINTR);
  const int error = count < 0 ? errno : 0;
  out_of_references_ = error == ETOOMANYREFS;
  if (count >= 0) return Sent::kYes;
  if (error == EPIPE || error == ECONNRESET || error == ECONNREFUSED) {
    peer_gone_ = true;
    return Sent::kToNobody;
  }
  const bool later =
      error == EAGAIN || error == EWOULDBLOCK || error == ENOBUFS || error == ETOOMANYREFS;
  return later ? Sent::kLater : Sent::kBroken;
}

Status Connection::Send(std::span<const std::byte> frame, std::span<const int> fds) {
  if (queue_.empty()) {
    switch (TrySend(frame, fds)) {
      case Sent::kYes:
      case Sent::kToNobody:
        return {};
      case Sent::kBroken:
        return Status::FromErrno(errno, "send");
      case Sent::kLater:
        break;
    }
  }
  if (queue_.size() >= kMaxQueued) {
    return Status(StatusCode::kResourceExhausted, "the client does not read its frames");
  }
  queue_.push_back({{frame.begin(), frame.end()}, {fds.begin(), fds.end()}});
  return {};
}

Status Connection::SendNow(std::span<const std::byte> frame, std::span<const int> fds) {
  // One at a time: descriptors on their way count for this whole user, and a client that collects
  // them in its socket would use up what others need for their handshakes.
  int unread = 0;
  const bool read_all = ::ioctl(socket_.get(), SIOCOUTQ, &unread) == 0 && unread == 0;
  if (queue_.empty() && read_all && TrySend(frame, fds) == Sent::kYes) return {};
  return Status(StatusCode::kResourceExhausted, "the last answer was not read yet");
}

Status Connection::Flush() {
  while (!queue_.empty()) {
    switch (TrySend(queue_.front().bytes, queue_.front().fds)) {
      case Sent::kYes:
      case Sent::kToNobody:
        queue_.pop_front();
        break;
      case Sent::kLater:
        return {};
      case Sent::kBroken:
        return Status::FromErrno(errno, "send");
    }
  }
  return {};
}

}  // namespace sluice::session
