// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/cli/daemon_client.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>

#include "common/peer/connect.h"
#include "intercept/protocol/wire.h"
#include "noderuntime/cli/layout.h"

namespace sluice::cli {
namespace {

namespace wire = ::sluice::protocol;

// More than a status or a recording can hold; bounds what a broken daemon can make us read.
constexpr uint64_t kMaxTextBytes = 64u << 20;

template <typename Frame>
Frame MakeFrame(wire::FrameType type) {
  Frame frame = {};
  frame.header.magic = wire::kMagic;
  frame.header.type = static_cast<uint16_t>(type);
  frame.header.bytes = sizeof(Frame);
  frame.header.seq = 1;
  return frame;
}

Status Broken(const std::string& what) {
  return Status(StatusCode::kUnavailable, "sluice-noded: " + what);
}

/// Who listens behind this socket, and why it may be silent, as far as it can be seen from here.
std::string WhySilent(int socket) {
  ucred peer = {};
  socklen_t length = sizeof peer;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0 || peer.pid <= 0) {
    return "";
  }
  const std::string pid = std::to_string(peer.pid);
  std::ifstream file("/proc/" + pid + "/stat");
  std::string stat;
  std::getline(file, stat);
  // The state stands behind the name, which may hold anything.
  const size_t name_end = stat.rfind(')');
  const char state = name_end + 2 < stat.size() ? stat[name_end + 2] : '?';
  if (state == 'T' || state == 't') {
    return ": process " + pid + " is stopped (SIGSTOP or a debugger); 'kill -CONT " + pid +
           "' lets it go on, and the jobs that wait for it with it";
  }
  return ": process " + pid + " hangs, or its control group is frozen";
}

Status TooLate(std::chrono::milliseconds patience, const std::string& why) {
  char seconds[32];
  std::snprintf(seconds, sizeof seconds, "%g", static_cast<double>(patience.count()) / 1e3);
  return Broken("no answer within " + std::string(seconds) + " s" + why);
}

/// The text in a file that came with an answer.
Result<std::string> ReadPassed(const UniqueFd& file, uint64_t bytes, const std::string& what) {
  if (!file.valid() || bytes > kMaxTextBytes) return Broken("sent a " + what + " without its text");
  std::string text(bytes, '\0');
  // Read, not map: a file that shrinks under a mapping would kill this process.
  if (::pread(file.get(), text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) {
    return Broken("sent a truncated " + what);
  }
  return text;
}

}  // namespace

Result<DaemonClient> DaemonClient::Connect(const std::string& socket_path,
                                           std::chrono::milliseconds patience) {
  UniqueFd fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return Status::FromErrno(errno, "socket");
  // One that hangs accepts nobody: when its backlog is full connect() would wait for ever.
  const auto ms = patience.count();
  const timeval limit = {ms / 1000, ms % 1000 * 1000};
  if (::setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit) != 0) {
    return Status::FromErrno(errno, "socket");
  }
  const peer::Outcome outcome = peer::Connect(fd.get(), socket_path.c_str(), ReachOf(socket_path));
  if (outcome.verdict != peer::Verdict::kTrusted) {
    return Status(StatusCode::kPermissionDenied, socket_path + ": " + peer::Why(outcome.verdict));
  }
  switch (outcome.error) {
    case 0:
      return DaemonClient(std::move(fd), patience);
    case ENAMETOOLONG:
      return Status(StatusCode::kInvalidArgument, "runtime directory: the path of the socket, " +
                                                      socket_path +
                                                      ", is too long; allowed: up to 107 bytes");
    case EAGAIN:
      return Status(StatusCode::kInternal, TooLate(patience, "").message());
    default:
      return Status::FromErrno(outcome.error, socket_path);
  }
}

Status DaemonClient::Send(const void* frame, size_t bytes) {
  if (::send(socket_.get(), frame, bytes, MSG_NOSIGNAL) != static_cast<ssize_t>(bytes)) {
    return Broken(std::string("cannot be asked: ") + std::strerror(errno));
  }
  return {};
}

Result<UniqueFd> DaemonClient::Receive(uint16_t type, void* frame, size_t bytes) {
  pollfd readable = {socket_.get(), POLLIN, 0};
  int ready = 0;
  do {
    ready = ::poll(&readable, 1, static_cast<int>(patience_.count()));
  } while (ready < 0 && errno == EINTR);
  if (ready == 0) return TooLate(patience_, WhySilent(socket_.get()));

  alignas(8) char buffer[wire::kMaxFrameBytes];
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
  iovec part = {buffer, sizeof buffer};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const ssize_t received = ::recvmsg(socket_.get(), &message, MSG_CMSG_CLOEXEC);
  if (received < 0) return Broken(std::string("does not answer: ") + std::strerror(errno));
  UniqueFd passed;
  const cmsghdr* item = CMSG_FIRSTHDR(&message);
  if (item != nullptr && item->cmsg_level == SOL_SOCKET && item->cmsg_type == SCM_RIGHTS) {
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(item), sizeof fd);
    passed.reset(fd);
  }
  if (received == 0) return Broken("closed the connection without an answer");

  wire::Header header = {};
  if (static_cast<size_t>(received) < sizeof header) return Broken("sent a truncated frame");
  std::memcpy(&header, buffer, sizeof header);
  if (header.magic != wire::kMagic || header.bytes != static_cast<uint32_t>(received)) {
    return Broken("speaks another protocol");
  }
  if (header.type == static_cast<uint16_t>(wire::FrameType::kClose)) {
    wire::Close close = {};
    std::memcpy(&close, buffer, std::min(static_cast<size_t>(received), sizeof close));
    close.text[sizeof close.text - 1] = '\0';
    return Broken(close.text);
  }
  // A daemon that took over answers each registration again: it cannot know who had the answer.
  constexpr auto kRegistered = static_cast<uint16_t>(wire::FrameType::kRegistered);
  if (header.type == kRegistered && type != kRegistered) return Receive(type, frame, bytes);
  if (header.type != type || static_cast<size_t>(received) != bytes) {
    return Broken("sent an unexpected frame of type " + std::to_string(header.type));
  }
  std::memcpy(frame, buffer, bytes);
  return passed;
}

Result<JobGrant> DaemonClient::Register(const JobRequest& request) {
  auto frame = MakeFrame<wire::Register>(wire::FrameType::kRegister);
  frame.limit_bytes = request.limit_bytes;
  frame.request_bytes = request.request_bytes;
  frame.gpu = request.gpu;
  if (request.observe) frame.flags |= wire::kObserve;
  std::memcpy(frame.name, request.name.data(),
              std::min(request.name.size(), sizeof frame.name - 1));
  if (Status sent = Send(&frame, sizeof frame); !sent.ok()) return sent;

  wire::Registered answer = {};
  const auto received =
      Receive(static_cast<uint16_t>(wire::FrameType::kRegistered), &answer, sizeof answer);
  if (!received.ok()) return received.status();
  answer.path[sizeof answer.path - 1] = '\0';
  if (answer.status != 0) return Status(StatusCode::kResourceExhausted, answer.path);
  return JobGrant{answer.job, answer.path};
}

Result<std::string> DaemonClient::FetchStatus(bool events) {
  auto frame = MakeFrame<wire::Status>(wire::FrameType::kStatus);
  if (!events) frame.header.flags |= wire::kWithoutEvents;
  if (Status sent = Send(&frame, sizeof frame); !sent.ok()) return sent;

  wire::StatusReply answer = {};
  const auto memory =
      Receive(static_cast<uint16_t>(wire::FrameType::kStatusReply), &answer, sizeof answer);
  if (!memory.ok()) return memory.status();
  return ReadPassed(*memory, answer.json_bytes, "status");
}

Result<std::string> DaemonClient::FetchLive(uint64_t since) {
  auto frame = MakeFrame<wire::Live>(wire::FrameType::kLive);
  frame.since = since;
  if (Status sent = Send(&frame, sizeof frame); !sent.ok()) return sent;
  wire::LiveReply answer = {};
  const auto file =
      Receive(static_cast<uint16_t>(wire::FrameType::kLiveReply), &answer, sizeof answer);
  if (!file.ok()) return file.status();
  return ReadPassed(*file, answer.json_bytes, "live view");
}

Result<std::string> DaemonClient::FetchRecording() {
  auto frame = MakeFrame<wire::Recording>(wire::FrameType::kRecording);
  if (Status sent = Send(&frame, sizeof frame); !sent.ok()) return sent;
  wire::RecordingReply answer = {};
  const auto file =
      Receive(static_cast<uint16_t>(wire::FrameType::kRecordingReply), &answer, sizeof answer);
  if (!file.ok()) return file.status();
  answer.text[sizeof answer.text - 1] = '\0';
  if (answer.status != 0) return Status(StatusCode::kFailedPrecondition, answer.text);
  return ReadPassed(*file, answer.trace_bytes, "recording");
}

Result<UniqueFd> DaemonClient::Share() const {
  UniqueFd second(::fcntl(socket_.get(), F_DUPFD_CLOEXEC, 3));
  if (!second.valid()) return Status::FromErrno(errno, "connection to sluice-noded");
  return second;
}

Result<uint32_t> DaemonClient::SetPolicy(const std::string& policy, uint32_t lanes) {
  auto frame = MakeFrame<wire::SetPolicy>(wire::FrameType::kSetPolicy);
  frame.lanes = lanes;
  std::memcpy(frame.policy, policy.data(), std::min(policy.size(), sizeof frame.policy - 1));
  if (Status sent = Send(&frame, sizeof frame); !sent.ok()) return sent;
  wire::PolicySet answer = {};
  const auto received =
      Receive(static_cast<uint16_t>(wire::FrameType::kPolicySet), &answer, sizeof answer);
  if (!received.ok()) return received.status();
  answer.text[sizeof answer.text - 1] = '\0';
  if (answer.status != 0) return Status(StatusCode::kInvalidArgument, answer.text);
  return answer.lanes;
}

Result<DaemonClient::Budget> DaemonClient::SetBudget(uint64_t bytes) {
  auto frame = MakeFrame<wire::SetBudget>(wire::FrameType::kSetBudget);
  frame.bytes = bytes;
  if (Status sent = Send(&frame, sizeof frame); !sent.ok()) return sent;
  wire::BudgetSet answer = {};
  const auto received =
      Receive(static_cast<uint16_t>(wire::FrameType::kBudgetSet), &answer, sizeof answer);
  if (!received.ok()) return received.status();
  answer.text[sizeof answer.text - 1] = '\0';
  if (answer.status != 0) return Status(StatusCode::kResourceExhausted, answer.text);
  return Budget{answer.bytes, answer.in_force};
}

Result<uint64_t> DaemonClient::SetLimit(uint32_t job, uint64_t bytes) {
  auto frame = MakeFrame<wire::SetLimit>(wire::FrameType::kSetLimit);
  frame.job = job;
  frame.bytes = bytes;
  if (Status sent = Send(&frame, sizeof frame); !sent.ok()) return sent;
  wire::LimitSet answer = {};
  const auto received =
      Receive(static_cast<uint16_t>(wire::FrameType::kLimitSet), &answer, sizeof answer);
  if (!received.ok()) return received.status();
  answer.text[sizeof answer.text - 1] = '\0';
  if (answer.status != 0) return Status(StatusCode::kFailedPrecondition, answer.text);
  return answer.bytes;
}

Result<DaemonClient::Drained> DaemonClient::Drain(bool on) {
  auto frame = MakeFrame<wire::Drain>(wire::FrameType::kDrain);
  frame.on = on ? 1 : 0;
  if (Status sent = Send(&frame, sizeof frame); !sent.ok()) return sent;
  wire::Drained answer = {};
  const auto received =
      Receive(static_cast<uint16_t>(wire::FrameType::kDrained), &answer, sizeof answer);
  if (!received.ok()) return received.status();
  answer.text[sizeof answer.text - 1] = '\0';
  if (answer.status != 0) return Status(StatusCode::kFailedPrecondition, answer.text);
  return Drained{answer.on != 0, answer.jobs};
}

std::string JobName(const std::string& program, const std::vector<std::string>& arguments) {
  std::string name = program.substr(program.rfind('/') + 1);
  for (const std::string& argument : arguments) name += ' ' + argument;
  // One line in tables and messages, whatever the arguments hold.
  std::replace_if(
      name.begin(), name.end(), [](char c) { return static_cast<unsigned char>(c) < ' '; }, ' ');
  constexpr size_t kMaxName = sizeof(wire::Register::name) - 1;
  if (name.size() > kMaxName) name.resize(kMaxName);
  return name;
}

}  // namespace sluice::cli
