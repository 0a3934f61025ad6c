// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/cli/observed_run.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

#include "common/printable.h"
#include "noderuntime/cli/observation.h"
#include "noderuntime/cli/offline/files.h"
#include "scheduler/trace/parse.h"

namespace sluice::cli {
namespace {

void Say(const std::string& line) {
  std::fprintf(stderr, "sluice: %s\n", PrintableLines(line).c_str());
}

/// The signals that end programs, and the one that says that one has ended: taken from a queue
/// while this lives.
class HeldSignals {
 public:
  HeldSignals() {
    ::sigemptyset(&set_);
    for (const int number : {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGCHLD}) ::sigaddset(&set_, number);
    ::sigprocmask(SIG_BLOCK, &set_, &before_);
    // Where it is ignored nobody could ask how the program ended.
    on_child_ = ::signal(SIGCHLD, SIG_DFL);
  }
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;
  ~HeldSignals() { Restore(); }

  /// As it was, for the program.
  void Restore() const {
    ::signal(SIGCHLD, on_child_);
    ::sigprocmask(SIG_SETMASK, &before_, nullptr);
  }
  siginfo_t Next() const {
    siginfo_t info = {};
    while (::sigwaitinfo(&set_, &info) < 0 && errno == EINTR) {
    }
    return info;
  }

 private:
  sigset_t set_;
  sigset_t before_;
  void (*on_child_)(int);
};

/// The exit code that a shell would give.
int WaitFor(pid_t program, const HeldSignals& signals) {
  for (;;) {
    int status = 0;
    const pid_t ended = ::waitpid(program, &status, WNOHANG);
    if (ended == program) {
      return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    }
    if (ended < 0 && errno != EINTR) return kExitCannotExecute;
    const siginfo_t info = signals.Next();
    // What the terminal sends goes to the program as well, and once is enough.
    if (info.si_signo != SIGCHLD && info.si_code != SI_KERNEL) ::kill(program, info.si_signo);
  }
}

int RunProgram(const RunOptions& options, const PreparedJob& job) {
  Result<UniqueFd> connection = job.client.Share();
  if (!connection.ok()) {
    Say(connection.status().message());
    return kExitRefused;
  }
  const HeldSignals signals;
  const pid_t program = ::fork();
  if (program < 0) {
    Say(std::string("fork: ") + std::strerror(errno));
    return kExitCannotExecute;
  }
  if (program == 0) {
    signals.Restore();
    ::_exit(BecomeProgram(options, job.environment, *std::move(connection)));
  }
  connection->reset();
  return WaitFor(program, signals);
}

/// Lines for stderr; an error says why there is nothing to say.
Result<std::string> Tell(DaemonClient* client, const std::string& file) {
  const Result<std::string> text = client->FetchRecording();
  if (!text.ok()) return text.status();
  if (Status written = WriteWholeFile(file, *text); !written.ok()) return written;
  Say("an iteration was recorded in " + file);
  const Result<std::string> status = client->FetchStatus();
  if (!status.ok()) return status.status();
  const Result<ObservedGpu> gpu = ReadObservedGpu(*status);
  if (!gpu.ok()) return gpu.status();
  const Result<NamedTrace> trace = ReadTrace(file);
  if (!trace.ok()) return trace.status();
  return DescribeObservation(*trace, file, *gpu);
}

bool IsThere(const std::string& file) {
  struct stat info = {};
  return ::lstat(file.c_str(), &info) == 0;
}

/// A run may take days: what would stand in the way at its end is said before it begins.
Status CheckTraceFile(const std::string& file) {
  if (IsThere(file)) {
    return Status(StatusCode::kInvalidArgument,
                  "--trace: " + file + " exists already; allowed: the name of a new file");
  }
  const std::string folder = std::filesystem::path(file).parent_path().string();
  if (::access(folder.empty() ? "." : folder.c_str(), W_OK | X_OK) == 0) return {};
  return Status::FromErrno(errno, "--trace: " + file);
}

}  // namespace

std::string TraceFile(const RunOptions& options, const std::string& folder) {
  if (!options.trace.empty()) return options.trace;
  const std::filesystem::path program = std::filesystem::path(options.command.front()).filename();
  const std::string stem = (folder / program).string();
  std::string file = stem + ".trace";
  for (uint64_t run = 2; IsThere(file); ++run) file = stem + "." + std::to_string(run) + ".trace";
  return file;
}

int RunObserved(const RunOptions& options, const Layout& layout) {
  if (const Status status = CheckTraceFile(TraceFile(options)); !status.ok()) {
    Say(status.message());
    return kExitUsage;
  }
  std::variant<PreparedJob, int> prepared = PrepareJob(options, layout);
  if (const int* code = std::get_if<int>(&prepared)) return *code;
  auto& job = std::get<PreparedJob>(prepared);
  const int code = RunProgram(options, job);
  // Asked anew: runs in one folder at the same time each get a file of their own.
  const Result<std::string> told = Tell(&job.client, TraceFile(options));
  if (!told.ok()) {
    Say("nothing can be said of sharing: " + told.status().message());
    return code;
  }
  for (size_t start = 0; start < told->size();) {
    const size_t end = told->find('\n', start);
    Say(told->substr(start, end - start));
    start = end + 1;
  }
  return code;
}

}  // namespace sluice::cli
