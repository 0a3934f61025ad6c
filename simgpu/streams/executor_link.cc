// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "simgpu/streams/executor_link.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <bit>
#include <cerrno>
#include <cstring>
#include <vector>

#include "common/cuda/abi.h"
#include "simgpu/streams/fd_passing.h"
#include "simgpu/streams/inside_driver.h"

extern char** environ;

namespace sluice::simgpu {
namespace {

/// Folder that this library was loaded from.
std::string OwnFolder() {
  Dl_info info;
  if (dladdr(reinterpret_cast<const void*>(&OwnFolder), &info) == 0 || info.dli_fname == nullptr) {
    return ".";
  }
  const std::string path = info.dli_fname;
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

struct Spawn {
  std::string path;
  std::vector<char*> argv;
  std::vector<char*> envp;
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;

  Spawn(int control, int channel) {
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    // What the executor prints must not end up in the program's output.
    posix_spawn_file_actions_adddup2(&actions, 2, 1);
    posix_spawn_file_actions_adddup2(&actions, control, kControlFd);
    posix_spawn_file_actions_adddup2(&actions, channel, kChannelFd);
    posix_spawn_file_actions_addclosefrom_np(&actions, kChannelFd + 1);
    posix_spawnattr_init(&attributes);
    sigset_t none;
    sigemptyset(&none);
    posix_spawnattr_setsigmask(&attributes, &none);
    sigset_t all;
    sigfillset(&all);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setflags(&attributes,
                             POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }
  ~Spawn() {
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
  }
};

/// Descriptors at or above 16 cannot collide with the numbers they are moved to.
UniqueFd High(UniqueFd fd) { return UniqueFd(fcntl(fd.get(), F_DUPFD_CLOEXEC, 16)); }

/// Starts the program as a grandchild whose parent is already gone, so that the application's
/// wait() and its SIGCHLD handler never learn of it. The raw system call: no handlers for fork()
/// run, and sanitizers need not know. The child does nothing but spawn, which takes no lock of the
/// C library.
int StartDetached(const Spawn& spawn) {
  // No exit signal: only a wait for clones (__WCLONE) sees this child.
  const long child = syscall(SYS_clone, 0UL, nullptr, nullptr, nullptr, 0UL);
  if (child == 0) {
    pid_t pid = 0;
    const int error = posix_spawn(&pid, spawn.path.c_str(), &spawn.actions, &spawn.attributes,
                                  spawn.argv.data(), spawn.envp.data());
    syscall(SYS_exit_group, error);
  }
  if (child < 0) return errno;
  int status = 0;
  while (waitpid(static_cast<pid_t>(child), &status, static_cast<int>(__WCLONE)) < 0) {
    if (errno != EINTR) return errno;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : ECHILD;
}

}  // namespace

Result<std::unique_ptr<ExecutorLink>> ExecutorLink::Start(const GpuState& gpu, uint32_t process,
                                                          int ordinal) {
  std::unique_ptr<ExecutorLink> link(new ExecutorLink);
  InsideDriver::TellOf(&gpu);
  const InsideDriver inside;
  {
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) {
      return Status::FromErrno(errno, "socketpair");
    }
    link->socket_ = UniqueFd(pair[0]);
    // Closed at the end of this block: the executor's death must be seen as end of file.
    const UniqueFd theirs = High(UniqueFd(pair[1]));
    UniqueFd memory = High(UniqueFd(memfd_create("simgpu-channel", MFD_CLOEXEC)));
    if (!theirs.valid() || !memory.valid() || ftruncate(memory.get(), sizeof(Channel)) != 0) {
      return Status::FromErrno(errno, "channel of a context");
    }
    void* map = mmap(nullptr, sizeof(Channel), PROT_READ | PROT_WRITE, MAP_SHARED, memory.get(), 0);
    if (map == MAP_FAILED) return Status::FromErrno(errno, "map the channel of a context");
    link->channel_ = static_cast<Channel*>(map);
    link->channel_->ring_slots = static_cast<uint32_t>(std::bit_ceil(gpu.machine().launch_queue));

    const ProcessId self = SelfProcess();
    const std::string arguments[] = {"simgpu-executor", gpu.dir(), std::to_string(self.pid),
                                     std::to_string(self.start), std::to_string(process)};
    Spawn spawn(theirs.get(), memory.get());
    spawn.path = OwnFolder() + "/simgpu-executor";
    for (const std::string& a : arguments) spawn.argv.push_back(const_cast<char*>(a.c_str()));
    spawn.argv.push_back(nullptr);
    for (char** e = environ; *e != nullptr; ++e) {
      // The executor is part of the "hardware": nothing that watches the program may watch it.
      if (strncmp(*e, "LD_PRELOAD=", 11) == 0 || strncmp(*e, "SLUICE_SOCKET=", 14) == 0) continue;
      spawn.envp.push_back(*e);
    }
    spawn.envp.push_back(nullptr);
    const int error = StartDetached(spawn);
    if (error != 0) return Status::FromErrno(error, "start " + spawn.path);
    link->channel_fd_ = std::move(memory);
  }
  ControlRequest start{};
  start.op = ControlOp::kStart;
  start.a = static_cast<uint64_t>(ordinal);
  const ControlReply hello = link->Call(start);
  if (hello.result == CUDA_ERROR_OUT_OF_MEMORY) {
    return Status(StatusCode::kResourceExhausted, "no memory for a context");
  }
  if (hello.result != CUDA_SUCCESS) {
    return Status(StatusCode::kUnavailable, "the executor of the simulated GPU did not start");
  }
  link->pid_ = static_cast<int>(hello.b);
  link->pidfd_ = UniqueFd(static_cast<int>(syscall(SYS_pidfd_open, hello.b, 0)));
  return link;
}

ExecutorLink::~ExecutorLink() {
  const InsideDriver inside;
  // Not only closed: a forked child may hold a copy of this end.
  if (socket_.valid()) shutdown(socket_.get(), SHUT_RDWR);
  if (pidfd_.valid()) {
    constexpr int kPatienceMs = 5000;
    pollfd gone{pidfd_.get(), POLLIN, 0};
    if (poll(&gone, 1, kPatienceMs) == 0) {
      syscall(SYS_pidfd_send_signal, pidfd_.get(), SIGKILL, nullptr, 0);
      poll(&gone, 1, kPatienceMs);
    }
  }
  if (channel_ != nullptr) munmap(channel_, sizeof(Channel));
}

bool ExecutorLink::Alive() const {
  pollfd gone{pidfd_.get(), POLLIN, 0};
  return poll(&gone, 1, 0) == 0;
}

ControlReply ExecutorLink::Call(const ControlRequest& request, int fd) {
  const std::lock_guard lock(mutex_);
  const InsideDriver inside;
  ControlReply reply{};
  int none = -1;
  if (!SendPacket(socket_.get(), &request, sizeof request, fd) ||
      !ReceivePacket(socket_.get(), &reply, sizeof reply, &none)) {
    reply = {};
    reply.result = CUDA_ERROR_LAUNCH_FAILED;
    strcpy(reply.text, "the executor of this context has ended");
  }
  return reply;
}

}  // namespace sluice::simgpu
