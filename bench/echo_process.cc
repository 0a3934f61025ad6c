// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "bench/echo_process.h"

#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "intercept/protocol/wire.h"

namespace sluice::bench {
namespace {

constexpr size_t kGrantBytes = offsetof(protocol::Grant, extent) + sizeof(protocol::Extent);
constexpr size_t kReleaseBytes = offsetof(protocol::Release, extent) + sizeof(protocol::Extent);

[[noreturn]] void Echo(int socket) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  char frame[protocol::kMaxFrameBytes] = {};
  for (;;) {
    const ssize_t bytes = ::recv(socket, frame, sizeof(frame), 0);
    if (bytes <= 0) ::_exit(0);
    if (bytes == static_cast<ssize_t>(kReleaseBytes)) continue;
    if (::send(socket, frame, kGrantBytes, MSG_NOSIGNAL) < 0) ::_exit(0);
  }
}

}  // namespace

std::unique_ptr<EchoProcess> EchoProcess::Start(std::string* error) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    *error = std::string("socketpair: ") + ::strerror(errno);
    return nullptr;
  }
  UniqueFd ours(ends[0]);
  UniqueFd theirs(ends[1]);
  const pid_t child = ::fork();
  if (child < 0) {
    *error = std::string("fork: ") + ::strerror(errno);
    return nullptr;
  }
  if (child == 0) {
    ::close(ours.get());
    Echo(theirs.get());
  }
  return std::unique_ptr<EchoProcess>(new EchoProcess(std::move(ours), child));
}

EchoProcess::~EchoProcess() {
  socket_ = UniqueFd();
  ::waitpid(child_, nullptr, 0);
}

bool EchoProcess::Ask() {
  const protocol::Lease lease{};
  char answer[protocol::kMaxFrameBytes];
  if (::send(socket_.get(), &lease, sizeof(lease), MSG_NOSIGNAL) == sizeof(lease) &&
      ::recv(socket_.get(), answer, sizeof(answer), 0) == static_cast<ssize_t>(kGrantBytes)) {
    return true;
  }
  error_ = "the echo process is gone";
  return false;
}

bool EchoProcess::GiveBack() {
  const protocol::Release release{};
  return ::send(socket_.get(), &release, kReleaseBytes, MSG_NOSIGNAL) ==
         static_cast<ssize_t>(kReleaseBytes);
}

}  // namespace sluice::bench
