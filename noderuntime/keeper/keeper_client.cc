// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/keeper/keeper_client.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "common/peer/connect.h"

namespace sluice::keeper {
namespace {

const char* What(Outcome outcome) {
  switch (outcome) {
    case Outcome::kDone:
      return "done";
    case Outcome::kBadRequest:
      return "the keeper does not understand (another version?)";
    case Outcome::kFull:
      return "the keeper is full";
    case Outcome::kNotFound:
      return "the keeper does not have it";
  }
  return "the keeper answers nonsense";
}

Request MakeRequest(Op op, Kind kind, uint32_t id, uint32_t index, uint32_t count) {
  return {kMagic, kVersion, op, {kind, id, index}, count};
}

}  // namespace

Result<KeeperClient> KeeperClient::Connect(const std::string& runtime_dir) {
  const std::string path = runtime_dir + "/keeper.sock";
  UniqueFd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!socket.valid()) return Status::FromErrno(errno, "socket");
  const timeval timeout = {kTimeoutS, 0};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout);
  ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
  const peer::Outcome outcome = peer::Connect(socket.get(), path.c_str(), peer::Reach::kOwn);
  if (outcome.verdict != peer::Verdict::kTrusted) {
    return Status(StatusCode::kUnavailable, path + ": " + peer::Why(outcome.verdict));
  }
  if (outcome.error == ENAMETOOLONG) {
    return Status(StatusCode::kInvalidArgument, path + ": too long for a socket");
  }
  if (outcome.error != 0) {
    // No socket, or one that a dead keeper has left: there is none. Anything else says nothing.
    const bool none = outcome.error == ENOENT || outcome.error == ECONNREFUSED;
    return Status(none ? StatusCode::kNotFound : StatusCode::kUnavailable,
                  path + ": " + std::strerror(outcome.error));
  }
  return KeeperClient(std::move(socket));
}

Result<KeeperClient> KeeperClient::Start(const std::string& program, const std::string& runtime_dir,
                                         uint32_t linger_s) {
  const Result<UniqueFd> launched = Launch(program, runtime_dir, linger_s);
  if (!launched.ok()) return launched.status();
  return ConnectLaunched(*launched, program, runtime_dir, kStartTimeoutMs);
}

Result<UniqueFd> KeeperClient::Launch(const std::string& program, const std::string& runtime_dir,
                                      uint32_t linger_s) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return Status::FromErrno(errno, "pipe");
  UniqueFd ready(ends[0]);
  UniqueFd tell(ends[1]);
  const std::string linger = std::to_string(linger_s);
  const std::string tell_fd = std::to_string(tell.get());
  const char* const arguments[] = {program.c_str(), runtime_dir.c_str(), linger.c_str(),
                                   tell_fd.c_str(), nullptr};
  const char* const environment[] = {nullptr};  // nothing is preloaded into it
  const pid_t child = ::fork();
  if (child < 0) return Status::FromErrno(errno, "fork");
  if (child == 0) {
    // Between fork and exec of a program with threads: system calls only.
    if (::setsid() >= 0 && ::fork() == 0 && ::fcntl(tell.get(), F_SETFD, 0) == 0 &&
        ::chdir("/") == 0) {
      const int null = ::open("/dev/null", O_RDWR);
      for (const int fd : {0, 1, 2}) ::dup2(null, fd);
      sigset_t none;
      sigemptyset(&none);
      ::sigprocmask(SIG_SETMASK, &none, nullptr);
      ::execve(program.c_str(), const_cast<char* const*>(arguments),
               const_cast<char* const*>(environment));
    }
    ::_exit(0);
  }
  tell.reset();
  ::waitpid(child, nullptr, 0);
  return ready;
}

Result<KeeperClient> KeeperClient::ConnectLaunched(const UniqueFd& launched,
                                                   const std::string& program,
                                                   const std::string& runtime_dir, int wait_ms) {
  pollfd readable = {launched.get(), POLLIN, 0};
  char byte = 0;
  if (::poll(&readable, 1, wait_ms) != 1 || ::read(launched.get(), &byte, 1) != 1) {
    return Status(StatusCode::kUnavailable, program + " did not start");
  }
  return Connect(runtime_dir);
}

pid_t KeeperClient::pid() const {
  ucred peer = {};
  socklen_t length = sizeof peer;
  return ::getsockopt(socket_.get(), SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 ? peer.pid : 0;
}

Status KeeperClient::Ask(const Request& request, std::span<const int> send, Reply* reply,
                         std::vector<UniqueFd>* came) {
  const auto lost = [](const std::string& what) {
    return Status(StatusCode::kUnavailable, "the keeper is gone: " + what);
  };
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kMaxFds)] = {};
  iovec data = {const_cast<Request*>(&request), sizeof request};
  msghdr message = {};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  if (!send.empty()) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(send.size_bytes());
    cmsghdr* part = CMSG_FIRSTHDR(&message);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(send.size_bytes());
    std::memcpy(CMSG_DATA(part), send.data(), send.size_bytes());
  }
  ssize_t count = -1;
  do {
    count = ::sendmsg(socket_.get(), &message, MSG_NOSIGNAL);
  } while (count < 0 && errno == EINTR);
  if (count != sizeof request) return lost(std::strerror(errno));

  data = {reply, sizeof *reply};
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  do {
    count = ::recvmsg(socket_.get(), &message, MSG_CMSG_CLOEXEC);
  } while (count < 0 && errno == EINTR);
  if (count < 0) return lost(std::strerror(errno));
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr;
       part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const size_t fds = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < fds; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(part) + i * sizeof fd, sizeof fd);
      came->emplace_back(fd);
    }
  }
  const size_t entries = request.op == Op::kList ? std::min<size_t>(reply->count, kMaxEntries) : 0;
  const bool sound =
      count >= static_cast<ssize_t>(offsetof(Reply, entry)) &&
      count == static_cast<ssize_t>(offsetof(Reply, entry) + entries * sizeof(Key)) &&
      reply->magic == kMagic && reply->op == request.op &&
      (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0 &&
      came->size() == (request.op == Op::kTake ? reply->count : 0);
  if (!sound) return lost(count == 0 ? "it hung up" : "it answers nonsense");
  if (reply->outcome == Outcome::kDone) return {};
  return Status(StatusCode::kFailedPrecondition, What(reply->outcome));
}

Status KeeperClient::Store(Key key, std::span<const int> fds) {
  const auto reply = std::make_unique<Reply>();
  std::vector<UniqueFd> none;
  for (size_t first = 0; first < fds.size(); first += kMaxFds) {
    const size_t count = std::min(kMaxFds, fds.size() - first);
    const Request request =
        MakeRequest(Op::kStore, key.kind, key.id, key.index + static_cast<uint32_t>(first),
                    static_cast<uint32_t>(count));
    if (Status s = Ask(request, fds.subspan(first, count), reply.get(), &none); !s.ok()) return s;
  }
  return {};
}

Status KeeperClient::Drop(Kind kind, uint32_t id) {
  const auto reply = std::make_unique<Reply>();
  std::vector<UniqueFd> none;
  return Ask(MakeRequest(Op::kDrop, kind, id, 0, 0), {}, reply.get(), &none);
}

Result<std::vector<Key>> KeeperClient::List() {
  const auto reply = std::make_unique<Reply>();
  std::vector<UniqueFd> none;
  std::vector<Key> keys;
  do {
    const Request request =
        MakeRequest(Op::kList, Kind::kState, 0, static_cast<uint32_t>(keys.size()), 0);
    if (Status s = Ask(request, {}, reply.get(), &none); !s.ok()) return s;
    keys.insert(keys.end(), reply->entry, reply->entry + reply->count);
  } while (reply->count == kMaxEntries && keys.size() < kMaxItems);
  return keys;
}

Result<std::vector<UniqueFd>> KeeperClient::Take(Kind kind, uint32_t id, uint32_t count) {
  const auto reply = std::make_unique<Reply>();
  std::vector<UniqueFd> fds;
  while (fds.size() < count) {
    std::vector<UniqueFd> batch;
    const auto first = static_cast<uint32_t>(fds.size());
    const auto wanted = static_cast<uint32_t>(std::min<size_t>(kMaxFds, count - fds.size()));
    const Request request = MakeRequest(Op::kTake, kind, id, first, wanted);
    if (Status s = Ask(request, {}, reply.get(), &batch); !s.ok()) return s;
    if (batch.size() != wanted) {
      return Status(StatusCode::kUnavailable, "the keeper gave fewer descriptors than asked for");
    }
    for (UniqueFd& fd : batch) fds.push_back(std::move(fd));
  }
  return fds;
}

Result<UniqueFd> KeeperClient::TakeOne(Kind kind, uint32_t id) {
  Result<std::vector<UniqueFd>> fds = Take(kind, id, 1);
  if (!fds.ok()) return fds.status();
  return std::move(fds->front());
}

Status KeeperClient::Bye() {
  const auto reply = std::make_unique<Reply>();
  std::vector<UniqueFd> none;
  if (Status s = Ask(MakeRequest(Op::kBye, Kind::kState, 0, 0, 0), {}, reply.get(), &none);
      !s.ok()) {
    return s;
  }
  // Until it has removed its socket, whose place another one may take.
  pollfd end = {socket_.get(), POLLIN, 0};
  ::poll(&end, 1, kTimeoutS * 1000);
  return {};
}

void KeeperClient::Dismiss() const {
  const Request request = MakeRequest(Op::kBye, Kind::kState, 0, 0, 0);
  // One that cannot take it ends when nobody lives who could use what it has.
  (void)::send(socket_.get(), &request, sizeof request, MSG_DONTWAIT | MSG_NOSIGNAL);
}

}  // namespace sluice::keeper
