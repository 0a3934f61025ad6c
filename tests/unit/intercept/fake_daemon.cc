// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "tests/unit/intercept/fake_daemon.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace sluice::test {

using protocol::FrameType;

namespace {

protocol::Header Head(FrameType type, size_t bytes, uint32_t seq, uint16_t flags = 0) {
  return {protocol::kMagic, static_cast<uint16_t>(type), flags, static_cast<uint32_t>(bytes), seq};
}

void SendWithFds(int socket, const void* bytes, size_t count, const std::vector<int>& fds) {
  iovec part{const_cast<void*>(bytes), count};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  std::vector<char> control(CMSG_SPACE(sizeof(int) * (fds.empty() ? 1 : fds.size())));
  if (!fds.empty()) {
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(sizeof(int) * fds.size());
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int) * fds.size());
    memcpy(CMSG_DATA(header), fds.data(), sizeof(int) * fds.size());
  }
  static_cast<void>(sendmsg(socket, &message, MSG_NOSIGNAL));
}

size_t WholePages(size_t bytes) { return (bytes + 4095) / 4096 * 4096; }

}  // namespace

FakeDaemon::FakeDaemon(const Options& options) : options_(options), held_(units(), false) {
  char folder[] = "/tmp/sluice-fake-XXXXXX";
  folder_ = mkdtemp(folder);
  path_ = folder_ + "/sluice.sock";
  listener_ = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  strcpy(address.sun_path, path_.c_str());
  EXPECT_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  EXPECT_EQ(listen(listener_, 4), 0);
  EXPECT_EQ(pipe2(wake_, O_CLOEXEC), 0);
  thread_ = std::thread([this] { Serve(); });
}

FakeDaemon::~FakeDaemon() {
  EXPECT_EQ(write(wake_[1], "x", 1), 1);
  thread_.join();
  for (const int fd : {listener_, socket_.load(), liveness_, wake_[0], wake_[1]}) {
    if (fd >= 0) close(fd);
  }
  for (const int fd : page_fds_) close(fd);
  if (marks != nullptr) munmap(marks, WholePages(sizeof *marks));
  if (client != nullptr) munmap(client, WholePages(sizeof *client));
  if (daemon != nullptr) munmap(daemon, WholePages(sizeof *daemon));
  unlink(path_.c_str());
  rmdir(folder_.c_str());
}

void* FakeDaemon::MakePage(const char* name, size_t bytes, int* fd) {
  *fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
  page_fds_.push_back(*fd);
  EXPECT_EQ(ftruncate(*fd, static_cast<off_t>(WholePages(bytes))), 0);
  if (options_.sealed) {
    EXPECT_EQ(fcntl(*fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL), 0);
  }
  return mmap(nullptr, WholePages(bytes), PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
}

void FakeDaemon::HandShake() {
  int daemon_fd = -1;
  marks = static_cast<protocol::MarkPage*>(MakePage("marks", sizeof *marks, &mark_fd));
  client = static_cast<protocol::ClientPage*>(MakePage("client", sizeof *client, &client_fd));
  daemon = static_cast<protocol::DaemonPage*>(MakePage("daemon", sizeof *daemon, &daemon_fd));
  daemon->limit_units = options_.limit_units;
  int pipe[2];
  EXPECT_EQ(pipe2(pipe, O_CLOEXEC), 0);
  liveness_ = pipe[0];
  protocol::Welcome welcome{};
  welcome.header = Head(FrameType::kWelcome, sizeof welcome, 0);
  welcome.major = protocol::kMajor;
  welcome.minor = options_.minor;
  welcome.limit_bytes = options_.limit_bytes;
  welcome.unit_bytes = options_.unit_bytes;
  welcome.handle_bytes = options_.unit_bytes * options_.units_per_handle;
  welcome.handle_count = options_.handles;
  SendWithFds(socket_, &welcome, sizeof welcome, {mark_fd, client_fd, daemon_fd, pipe[1]});
  close(pipe[1]);
  // Two frames when there are several handles, so that the order matters.
  for (uint32_t first = 0; first < options_.handles;) {
    const uint32_t count = first == 0 && options_.handles > 1 ? 1 : options_.handles - first;
    std::vector<int> fds;
    for (uint32_t i = 0; i < count; ++i) fds.push_back(memfd_create("handle", MFD_CLOEXEC));
    protocol::Handles handles{};
    const bool last = first + count == options_.handles;
    handles.header = Head(FrameType::kHandles, sizeof handles, 0,
                          last ? uint16_t{protocol::kLastFrame} : uint16_t{0});
    handles.first = first;
    handles.count = count;
    SendWithFds(socket_, &handles, sizeof handles, fds);
    for (const int fd : fds) close(fd);
    first += count;
  }
}

void FakeDaemon::Serve() {
  while (true) {
    pollfd wait[2] = {{socket_ >= 0 ? socket_.load() : listener_, POLLIN, 0},
                      {wake_[0], POLLIN, 0}};
    if (poll(wait, 2, -1) < 0) continue;
    if (wait[1].revents != 0) return;
    if (socket_ < 0) {
      socket_ = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      continue;
    }
    Bytes frame(protocol::kMaxFrameBytes);
    const ssize_t got = recv(socket_, frame.data(), frame.size(), 0);
    if (got <= 0) {
      close(socket_);
      socket_ = -1;
      continue;
    }
    frame.resize(static_cast<size_t>(got));
    protocol::Header header{};
    memcpy(&header, frame.data(), sizeof header);
    const auto type = static_cast<FrameType>(header.type);
    if (type == FrameType::kRelease) {
      protocol::Release release{};
      memcpy(&release, frame.data(), frame.size());
      if (on_release) on_release(release);
      const std::lock_guard lock(mutex_);
      for (uint32_t i = 0; i < release.extents; ++i) {
        for (uint32_t u = 0; u < release.extent[i].length; ++u) {
          EXPECT_TRUE(held_[release.extent[i].offset + u]) << "released what it does not hold";
          held_[release.extent[i].offset + u] = false;
        }
      }
    }
    if (type == FrameType::kUncharge) {
      protocol::Uncharge uncharge{};
      memcpy(&uncharge, frame.data(), sizeof uncharge);
      const std::lock_guard lock(mutex_);
      EXPECT_GE(charged_[uncharge.family], uncharge.bytes) << "gives back what was never charged";
      charged_[uncharge.family] -= uncharge.bytes;
    }
    if (type == FrameType::kCount) {
      protocol::Count count{};
      memcpy(&count, frame.data(), sizeof count);
      const std::lock_guard lock(mutex_);
      counted_[count.family] = count.bytes;
    }
    if (type == FrameType::kResume) TakeDeclaration(frame);
    if (type == FrameType::kAsk) AnswerAsk();
    if (type == FrameType::kHello) {
      // Once: what it does may be to refuse.
      const auto hello = std::exchange(on_hello, nullptr);
      hello ? hello() : HandShake();
    }
    {
      const std::lock_guard lock(mutex_);
      frames_.push_back(frame);
    }
    changed_.notify_all();
    if (type == FrameType::kBye) {
      close(socket_);
      socket_ = -1;
      continue;
    }
    if (type == FrameType::kLease || type == FrameType::kGate || type == FrameType::kCharge) {
      std::aligned_storage_t<64, 8> copy;
      memcpy(&copy, frame.data(), std::min<size_t>(frame.size(), sizeof copy));
      const auto& request = *reinterpret_cast<const protocol::Header*>(&copy);
      on_request ? on_request(request) : AnswerAsUsual(request);
    }
  }
}

std::vector<protocol::Extent> FakeDaemon::TakeUnits(uint32_t count) {
  std::vector<protocol::Extent> extents;
  for (uint32_t unit = 0; unit < units(); ++unit) {
    uint32_t run = 0;
    while (unit + run < units() && !held_[unit + run] && run < count) ++run;
    if (run == count) {
      for (uint32_t i = 0; i < run; ++i) held_[unit + i] = true;
      extents.push_back({unit, run});
      break;
    }
  }
  return extents;
}

void FakeDaemon::AnswerAsUsual(const protocol::Header& request) {
  if (request.type == static_cast<uint16_t>(FrameType::kGate)) {
    Grant(request.seq, {}, reinterpret_cast<const protocol::Gate&>(request).gate);
    return;
  }
  if (request.type == static_cast<uint16_t>(FrameType::kCharge)) {
    return AnswerCharge(reinterpret_cast<const protocol::Charge&>(request));
  }
  const auto& lease = reinterpret_cast<const protocol::Lease&>(request);
  const uint32_t limit = options_.limit_units == 0 ? units() : options_.limit_units;
  std::vector<protocol::Extent> extents;
  bool over = false;
  {
    const std::lock_guard lock(mutex_);
    uint32_t held = 0;
    for (const bool unit : held_) held += unit ? 1 : 0;
    over = held + lease.units > limit;
    if (!over) extents = TakeUnits(lease.units);
  }
  if (extents.empty()) {
    Deny(request.seq, over ? protocol::DenyCode::kOverLimit : protocol::DenyCode::kExhausted,
         over ? "over the limit of this job" : "nothing is free");
  } else {
    Grant(request.seq, extents, protocol::kNoGate);
  }
}

void FakeDaemon::AnswerAsk() {
  protocol::Told told{};
  told.header = Head(FrameType::kTold, sizeof told, 0);
  memset(told.device_uuid, 7, sizeof told.device_uuid);
  const uint32_t limit = options_.limit_units == 0 ? units() : options_.limit_units;
  told.total_bytes = limit * options_.unit_bytes;
  told.used_bytes = told_used;
  SendRaw(&told, sizeof told);
}

void FakeDaemon::AnswerCharge(const protocol::Charge& charge) {
  protocol::Charged answer{};
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [family, bytes] : charged_) answer.outside_bytes += bytes;
    if (answer.outside_bytes + charge.bytes <= options_.outside_bytes) {
      charged_[charge.family] += charge.bytes;
      answer.header = Head(FrameType::kCharged, sizeof answer, charge.header.seq);
      answer.outside_bytes += charge.bytes;
    }
  }
  changed_.notify_all();
  if (answer.header.bytes == 0) {
    Deny(charge.header.seq, protocol::DenyCode::kExhausted, "nothing is left outside the pool");
  } else {
    SendRaw(&answer, sizeof answer);
  }
}

uint64_t FakeDaemon::WaitFor(const std::map<uint32_t, uint64_t>& table, uint32_t family,
                             uint64_t expected) {
  std::unique_lock lock(mutex_);
  const auto now = [&] {
    const auto found = table.find(family);
    return found == table.end() ? 0 : found->second;
  };
  changed_.wait_for(lock, std::chrono::seconds(10), [&] { return now() == expected; });
  return now();
}

uint64_t FakeDaemon::WaitCharged(protocol::Family family, uint64_t expected) {
  return WaitFor(charged_, static_cast<uint32_t>(family), expected);
}

uint64_t FakeDaemon::Counted(protocol::Family family) {
  const std::lock_guard lock(mutex_);
  return counted_[static_cast<uint32_t>(family)];
}

uint64_t FakeDaemon::WaitCounted(protocol::Family family, uint64_t expected) {
  return WaitFor(counted_, static_cast<uint32_t>(family), expected);
}

void FakeDaemon::Grant(uint32_t seq, const std::vector<protocol::Extent>& extents, uint32_t gate,
                       bool last, uint64_t epoch) {
  protocol::Grant frame{};
  const size_t bytes = offsetof(protocol::Grant, extent) + 8 * extents.size();
  frame.header =
      Head(FrameType::kGrant, bytes, seq, last ? uint16_t{protocol::kLastFrame} : uint16_t{0});
  frame.gate = gate;
  frame.epoch = epoch != 0 ? epoch : ++epoch_;
  frame.extents = static_cast<uint32_t>(extents.size());
  for (size_t i = 0; i < extents.size(); ++i) frame.extent[i] = extents[i];
  {
    const std::lock_guard lock(mutex_);
    for (const auto& extent : extents) {
      for (uint32_t u = 0; u < extent.length && extent.offset + u < units(); ++u) {
        held_[extent.offset + u] = true;
      }
    }
  }
  SendRaw(&frame, bytes);
}

void FakeDaemon::Deny(uint32_t seq, protocol::DenyCode code, const char* text) {
  protocol::Deny frame{};
  frame.header = Head(FrameType::kDeny, sizeof frame, seq);
  frame.code = static_cast<uint32_t>(code);
  strncpy(frame.text, text, sizeof frame.text - 1);
  SendRaw(&frame, sizeof frame);
}

void FakeDaemon::Quiesce(uint32_t seq) {
  protocol::Quiesce frame{};
  frame.header = Head(FrameType::kQuiesce, sizeof frame, seq);
  SendRaw(&frame, sizeof frame);
}

void FakeDaemon::Notice(const char* text) {
  protocol::Notice frame{};
  frame.header = Head(FrameType::kNotice, sizeof frame, 0);
  strncpy(frame.text, text, sizeof frame.text - 1);
  SendRaw(&frame, sizeof frame);
}

void FakeDaemon::Close(const char* text) {
  protocol::Close frame{};
  frame.header = Head(FrameType::kClose, sizeof frame, 0);
  strncpy(frame.text, text, sizeof frame.text - 1);
  SendRaw(&frame, sizeof frame);
}

void FakeDaemon::SendRaw(const void* bytes, size_t count) {
  SendWithFds(socket_, bytes, count, {});
}

void FakeDaemon::HangUp() {
  if (!options_.socket_is_kept) unlink(path_.c_str());
  shutdown(socket_, SHUT_RDWR);
}

void FakeDaemon::TakeDeclaration(const Bytes& frame) {
  protocol::Resume resume{};
  memcpy(static_cast<void*>(&resume), frame.data(), frame.size());
  {
    const std::lock_guard lock(mutex_);
    if (!declaring_) std::fill(held_.begin(), held_.end(), false);
    declaring_ = (resume.header.flags & protocol::kLastFrame) == 0;
    for (uint32_t i = 0; resume.part == protocol::ResumePart::kHeld && i < resume.count; ++i) {
      for (uint32_t u = 0; u < resume.extent[i].length; ++u) {
        held_[resume.extent[i].offset + u] = true;
      }
    }
    if (declaring_) return;
  }
  if (on_declared) on_declared();
  int fd = -1;
  void* page = MakePage("daemon", sizeof *daemon, &fd);
  memcpy(page, static_cast<const void*>(daemon), sizeof *daemon);
  munmap(daemon, WholePages(sizeof *daemon));
  daemon = static_cast<protocol::DaemonPage*>(page);
  client->resume_wanted.store(0);
  protocol::Resumed resumed{};
  resumed.header = Head(FrameType::kResumed, sizeof resumed, 0);
  resumed.major = protocol::kMajor;
  resumed.minor = protocol::kMinor;
  SendWithFds(socket_, &resumed, sizeof resumed, {fd});
}

std::vector<FakeDaemon::Bytes> FakeDaemon::Wait(FrameType type, size_t count) {
  std::vector<Bytes> found;
  std::unique_lock lock(mutex_);
  const bool came = changed_.wait_for(lock, std::chrono::seconds(20), [&] {
    found.clear();
    for (const Bytes& frame : frames_) {
      if (reinterpret_cast<const protocol::Header*>(frame.data())->type ==
          static_cast<uint16_t>(type)) {
        found.push_back(frame);
      }
    }
    return found.size() >= count;
  });
  EXPECT_TRUE(came) << "frame type " << static_cast<int>(type) << " did not come";
  return found;
}

size_t FakeDaemon::Count(FrameType type) { return Wait(type, 0).size(); }

bool FakeDaemon::LivenessHungUp() {
  pollfd wait{liveness_, POLLIN, 0};
  return poll(&wait, 1, 0) == 1 && (wait.revents & POLLHUP) != 0;
}

uint64_t FakeDaemon::held_units() {
  const std::lock_guard lock(mutex_);
  uint64_t held = 0;
  for (const bool unit : held_) held += unit ? 1 : 0;
  return held;
}

}  // namespace sluice::test
