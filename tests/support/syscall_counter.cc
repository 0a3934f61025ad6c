// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "tests/support/syscall_counter.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <stdexcept>

namespace sluice::testing {
namespace {

// glibc's <sys/ptrace.h> and the kernel's <linux/ptrace.h> cannot be included together; this is the
// part of the kernel's structure that is needed here.
struct SyscallInfo {
  uint8_t op;  // 1: entry
  uint8_t padding[3];
  uint32_t arch;
  uint64_t instruction_pointer;
  uint64_t stack_pointer;
  uint64_t number;
  uint64_t argument[6];
};
constexpr auto kGetSyscallInfo = static_cast<__ptrace_request>(0x420e);
constexpr uint8_t kEntry = 1;
constexpr int kSyscallStop = SIGTRAP | 0x80;

[[noreturn]] void BecomeTraced(char* const* argv, char* const* envp) {
  const int null = ::open("/dev/null", O_RDWR);
  ::dup2(null, STDIN_FILENO);
  ::dup2(null, STDOUT_FILENO);
  // A group of its own: the tracer waits for that, and leaves the test's other children alone.
  ::setpgid(0, 0);
  ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
  ::raise(SIGSTOP);
  ::execve(argv[0], argv, envp);
  ::_exit(127);
}

void Count(pid_t thread, TracedRun& run) {
  SyscallInfo info = {};
  if (::ptrace(kGetSyscallInfo, thread, sizeof info, &info) <= 0 || info.op != kEntry) return;
  if (info.number == SYS_write && info.argument[0] == STDOUT_FILENO) {
    run.spans.emplace_back();
  } else if (!run.spans.empty()) {
    ++run.spans.back().total;
    ++run.spans.back().by_number[static_cast<int64_t>(info.number)];
  }
}

}  // namespace

TracedRun CountSyscalls(std::vector<std::string> argv, const cli::Environment& environment) {
  std::vector<std::string> entries = environment.Entries();
  const std::vector<char*> argv_pointers = cli::Pointers(argv);
  const std::vector<char*> env_pointers = cli::Pointers(entries);
  const pid_t child = ::fork();
  if (child == 0) BecomeTraced(argv_pointers.data(), env_pointers.data());
  int status = 0;
  if (::waitpid(child, &status, __WALL) != child || !WIFSTOPPED(status)) {
    throw std::runtime_error("the program cannot be traced");
  }
  constexpr long kOptions = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_EXITKILL;
  ::ptrace(PTRACE_SETOPTIONS, child, nullptr, kOptions);
  ::ptrace(PTRACE_SYSCALL, child, nullptr, nullptr);

  TracedRun run;
  for (;;) {
    const pid_t thread = ::waitpid(-child, &status, __WALL);
    if (thread < 0) {
      if (errno == EINTR) continue;
      break;
    }
    if (!WIFSTOPPED(status)) {
      if (thread == child) {
        run.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      }
      continue;
    }
    long deliver = 0;
    if (WSTOPSIG(status) == kSyscallStop) {
      Count(thread, run);
    } else if (WSTOPSIG(status) != SIGTRAP && WSTOPSIG(status) != SIGSTOP) {
      deliver = WSTOPSIG(status);
    }
    ::ptrace(PTRACE_SYSCALL, thread, nullptr, deliver);
  }
  return run;
}

std::string Describe(const SyscallSpan& span) {
  std::string text = std::to_string(span.total) + " calls:";
  for (const auto& [number, count] : span.by_number) {
    text += " #" + std::to_string(number) + " x" + std::to_string(count);
  }
  return text;
}

}  // namespace sluice::testing
