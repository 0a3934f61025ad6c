// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/cli/child.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace sluice::cli {
namespace {

// Between fork and exec only async-signal-safe calls: everything that allocates is done before.
struct ChildPlan {
  char* const* argv;
  char* const* envp;
  int streams[3];
  int keep;
  int report;
  bool detached;
  pid_t parent;
};

[[noreturn]] void FailChild(int report) {
  const int error = errno;
  [[maybe_unused]] const ssize_t written = ::write(report, &error, sizeof error);
  ::_exit(127);
}

[[noreturn]] void BecomeChild(const ChildPlan& plan) {
  if (plan.detached) {
    ::setsid();
    const pid_t second = ::fork();
    if (second < 0) FailChild(plan.report);
    if (second > 0) ::_exit(0);
  } else {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != plan.parent) ::_exit(127);
  }
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::signal(SIGPIPE, SIG_DFL);
  for (int stream = 0; stream < 3; ++stream) {
    const int source = plan.streams[stream] >= 0
                           ? plan.streams[stream]
                           : ::open("/dev/null", stream == 0 ? O_RDONLY : O_WRONLY);
    if (source < 0) FailChild(plan.report);
    // dup2 onto itself would leave close-on-exec set.
    if (source == stream ? ::fcntl(stream, F_SETFD, 0) < 0 : ::dup2(source, stream) < 0) {
      FailChild(plan.report);
    }
    if (plan.streams[stream] < 0 && source > 2) ::close(source);
  }
  if (plan.keep >= 0) ::fcntl(plan.keep, F_SETFD, 0);
  ::execve(plan.argv[0], plan.argv, plan.envp);
  FailChild(plan.report);
}

Result<pid_t> Fork(const SpawnOptions& options) {
  std::vector<std::string> argv_text = options.argv;
  std::vector<std::string> env_text = options.environment.Entries();
  const std::vector<char*> argv = Pointers(argv_text);
  const std::vector<char*> envp = Pointers(env_text);
  int report[2];
  if (::pipe2(report, O_CLOEXEC) != 0) return Status::FromErrno(errno, "pipe");
  UniqueFd read_end(report[0]);
  UniqueFd write_end(report[1]);
  const ChildPlan plan = {
      argv.data(),  envp.data(),     {options.input, options.output, options.error},
      options.keep, write_end.get(), options.detached,
      ::getpid()};
  const pid_t pid = ::fork();
  if (pid < 0) return Status::FromErrno(errno, "fork");
  if (pid == 0) BecomeChild(plan);
  write_end.reset();
  // End of file: exec closed the other end, the program runs.
  int error = 0;
  ssize_t got = 0;
  do {
    got = ::read(read_end.get(), &error, sizeof error);
  } while (got < 0 && errno == EINTR);
  if (options.detached) ::waitpid(pid, nullptr, 0);
  if (got == static_cast<ssize_t>(sizeof error)) {
    if (!options.detached) ::waitpid(pid, nullptr, 0);
    return Status::FromErrno(error, options.argv.front());
  }
  return pid;
}

}  // namespace

std::string ExitStatus::Describe() const {
  if (signal == 0) return "exit code " + std::to_string(code);
  return "killed by signal " + std::to_string(signal) + " (" + ::strsignal(signal) + ")";
}

Result<Child> Child::Spawn(const SpawnOptions& options) {
  const Result<pid_t> pid = Fork(options);
  if (!pid.ok()) return pid.status();
  // By number: the declaration of glibc 2.36 lacks C linkage.
  UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, *pid, 0)));
  if (!pidfd.valid()) {
    const Status status = Status::FromErrno(errno, "pidfd_open");
    ::kill(*pid, SIGKILL);
    ::waitpid(*pid, nullptr, 0);
    return status;
  }
  return Child(*pid, std::move(pidfd));
}

Child::Child(Child&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), pidfd_(std::move(other.pidfd_)), ended_(other.ended_) {}

Child& Child::operator=(Child&& other) noexcept {
  if (this != &other) {
    Destroy();
    pid_ = std::exchange(other.pid_, -1);
    pidfd_ = std::move(other.pidfd_);
    ended_ = other.ended_;
  }
  return *this;
}

void Child::Destroy() {
  if (pid_ < 0 || ended_) return;
  Signal(SIGKILL);
  Wait(-1);
}

void Child::Signal(int number) const {
  // Not reaped yet, so the number still names our child.
  if (pid_ > 0 && !ended_) ::kill(pid_, number);
}

std::optional<ExitStatus> Child::Wait(int timeout_ms) {
  if (ended_) return ended_;
  pollfd ready = {pidfd_.get(), POLLIN, 0};
  int count = 0;
  do {
    count = ::poll(&ready, 1, timeout_ms);
  } while (count < 0 && errno == EINTR);
  if (count <= 0) return std::nullopt;
  int status = 0;
  if (::waitpid(pid_, &status, 0) != pid_) return std::nullopt;
  ended_ = WIFSIGNALED(status) ? ExitStatus{128 + WTERMSIG(status), WTERMSIG(status)}
                               : ExitStatus{WEXITSTATUS(status), 0};
  return ended_;
}

Status SpawnDetached(SpawnOptions options) {
  options.detached = true;
  return Fork(options).status();
}

Result<CommandOutput> RunCommand(SpawnOptions options) {
  int out[2];
  int err[2];
  if (::pipe2(out, O_CLOEXEC) != 0) return Status::FromErrno(errno, "pipe");
  UniqueFd out_read(out[0]);
  UniqueFd out_write(out[1]);
  if (::pipe2(err, O_CLOEXEC) != 0) return Status::FromErrno(errno, "pipe");
  UniqueFd err_read(err[0]);
  UniqueFd err_write(err[1]);
  options.output = out_write.get();
  options.error = err_write.get();
  Result<Child> child = Child::Spawn(options);
  if (!child.ok()) return child.status();
  out_write.reset();
  err_write.reset();

  CommandOutput result;
  pollfd fds[] = {{out_read.get(), POLLIN, 0}, {err_read.get(), POLLIN, 0}};
  std::string* texts[] = {&result.out, &result.err};
  while (fds[0].fd >= 0 || fds[1].fd >= 0) {
    if (::poll(fds, 2, -1) < 0 && errno != EINTR) return Status::FromErrno(errno, "poll");
    for (int i = 0; i < 2; ++i) {
      if (fds[i].fd < 0 || fds[i].revents == 0) continue;
      char buffer[4096];
      const ssize_t got = ::read(fds[i].fd, buffer, sizeof buffer);
      if (got > 0) {
        texts[i]->append(buffer, static_cast<size_t>(got));
      } else if (got == 0 || errno != EINTR) {
        fds[i].fd = -1;
      }
    }
  }
  result.status = *child->Wait(-1);
  return result;
}

}  // namespace sluice::cli
