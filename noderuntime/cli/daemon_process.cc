// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/cli/daemon_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <fstream>

namespace sluice::cli {
namespace {

constexpr int kStopTimeoutMs = 20'000;
constexpr int kElectionTimeoutMs = 20'000;

/// Everything a starting daemon needs, for either kind of child.
struct Preparation {
  SpawnOptions spawn;
  UniqueFd log;
  UniqueFd ready_read;
  UniqueFd ready_write;
};

Result<Preparation> Prepare(const DaemonOptions& options, const Environment& environment) {
  Preparation made;
  made.log.reset(::open(options.log_file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!made.log.valid()) return Status::FromErrno(errno, options.log_file);
  int ready[2];
  if (::pipe2(ready, O_CLOEXEC) != 0) return Status::FromErrno(errno, "pipe");
  made.ready_read.reset(ready[0]);
  made.ready_write.reset(ready[1]);
  made.spawn.argv = {options.program, "--runtime-dir", options.runtime_dir, "--ready-fd",
                     std::to_string(ready[1])};
  made.spawn.argv.insert(made.spawn.argv.end(), options.flags.begin(), options.flags.end());
  made.spawn.environment = environment;
  made.spawn.output = made.log.get();
  made.spawn.error = made.log.get();
  made.spawn.keep = ready[1];
  return made;
}

/// Waits for the byte that says "listening". End of file without one: the daemon ended.
Status AwaitReady(Preparation& made, const DaemonOptions& options) {
  made.ready_write.reset();
  pollfd readable = {made.ready_read.get(), POLLIN, 0};
  int count = 0;
  do {
    count = ::poll(&readable, 1, options.ready_timeout_ms);
  } while (count < 0 && errno == EINTR);
  char byte = 0;
  if (count > 0 && ::read(made.ready_read.get(), &byte, 1) == 1) return {};
  const std::string last = LastLine(options.log_file);
  const std::string why =
      count == 0 ? "is not ready after " + std::to_string(options.ready_timeout_ms / 1000) + " s"
                 : "did not start";
  return Status(StatusCode::kUnavailable,
                "sluice-noded " + why + (last.empty() ? "" : ": " + last));
}

Status TakeTurn(const std::string& runtime_dir, UniqueFd& turn) {
  const std::string path = runtime_dir + "/start.lock";
  turn.reset(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!turn.valid()) return Status::FromErrno(errno, path);
  while (::flock(turn.get(), LOCK_EX) != 0) {
    if (errno != EINTR) return Status::FromErrno(errno, path);
  }
  return {};
}

/// Whether some daemon lives in the folder. Asked only after a start has failed: for a moment the
/// question itself keeps others from taking the lock. Opened for reading: a file opened for writing
/// would wake those who wait for the daemon's end when it is closed.
bool DaemonLocked(const std::string& runtime_dir) {
  const UniqueFd lock(::open((runtime_dir + "/noded.lock").c_str(), O_RDONLY | O_CLOEXEC));
  return lock.valid() && ::flock(lock.get(), LOCK_SH | LOCK_NB) != 0;
}

Status StartDetached(const Layout& layout, const std::string& runtime_dir,
                     const std::vector<std::string>& flags, const Environment& environment) {
  DaemonOptions options;
  options.program = layout.Program("sluice-noded");
  options.runtime_dir = runtime_dir;
  options.log_file = runtime_dir + "/noded.log";
  options.flags = {"--idle-exit", "5"};
  options.flags.insert(options.flags.end(), flags.begin(), flags.end());
  Result<Preparation> made = Prepare(options, DaemonEnvironment(environment, layout));
  if (!made.ok()) return made.status();
  if (Status started = SpawnDetached(std::move(made->spawn)); !started.ok()) return started;
  return AwaitReady(*made, options);
}

bool NobodyListens(const Status& status) {
  return status.code() == StatusCode::kNotFound || status.code() == StatusCode::kUnavailable;
}

}  // namespace

std::string LastLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::string last;
  while (std::getline(file, line)) {
    if (!line.empty()) last = line;
  }
  return last;
}

Environment DaemonEnvironment(Environment environment, const Layout& layout) {
  environment.Unset("SLUICE_SOCKET");
  environment.Remove("LD_PRELOAD", layout.library);
  environment.Remove("LD_PRELOAD", layout.preload);
  return environment;
}

Result<DaemonProcess> DaemonProcess::Start(const DaemonOptions& options,
                                           const Environment& environment) {
  Result<Preparation> made = Prepare(options, environment);
  if (!made.ok()) return made.status();
  Result<Child> child = Child::Spawn(made->spawn);
  if (!child.ok()) return child.status();
  if (Status ready = AwaitReady(*made, options); !ready.ok()) return ready;
  return DaemonProcess(std::move(*child));
}

Status DaemonProcess::Stop() {
  child_.Signal(SIGTERM);
  const auto status = child_.Wait(kStopTimeoutMs);
  if (!status) {
    child_.Signal(SIGKILL);
    child_.Wait(-1);
    return Status(StatusCode::kInternal, "sluice-noded did not end when asked to");
  }
  if (!status->ok()) {
    return Status(StatusCode::kInternal, "sluice-noded ended badly: " + status->Describe());
  }
  return {};
}

Result<DaemonClient> ConnectOrStart(const Layout& layout, const std::string& runtime_dir,
                                    const std::vector<std::string>& flags,
                                    const Environment& environment) {
  const std::string socket = DaemonSocket(runtime_dir);
  Result<DaemonClient> client = DaemonClient::Connect(socket);
  if (client.ok() || !NobodyListens(client.status())) return client;
  if (Status made = MakeRuntimeDir(runtime_dir); !made.ok()) return made;

  // Launchers take turns, so that one does not see its daemon lose the election to another's that
  // does not listen yet. The daemon's lock still decides: one may be started by hand, or be ending.
  UniqueFd turn;
  if (Status taken = TakeTurn(runtime_dir, turn); !taken.ok()) return taken;
  UniqueFd changes(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  if (!changes.valid() || ::inotify_add_watch(changes.get(), runtime_dir.c_str(),
                                              IN_CREATE | IN_MOVED_TO | IN_CLOSE_WRITE) < 0) {
    return Status::FromErrno(errno, runtime_dir);
  }
  using Clock = std::chrono::steady_clock;
  const Clock::time_point deadline = Clock::now() + std::chrono::milliseconds(kElectionTimeoutMs);
  // A start fails for a reason of its own, or because of another daemon's lock, which may be gone
  // when we look: only the second failure without a lock in sight is the answer.
  for (int unexplained = 0; unexplained < 2;) {
    client = DaemonClient::Connect(socket);
    if (client.ok() || !NobodyListens(client.status())) return client;
    const Status started = StartDetached(layout, runtime_dir, flags, environment);
    char events[4096];
    while (::read(changes.get(), events, sizeof events) > 0) {
    }
    client = DaemonClient::Connect(socket);
    if (client.ok() || started.ok()) return client;
    if (!DaemonLocked(runtime_dir)) {
      ++unexplained;
      client = started;
      continue;
    }
    // That daemon begins or ends; either changes a file here (its socket appears, its lock is
    // closed).
    unexplained = 0;
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd changed = {changes.get(), POLLIN, 0};
    if (left <= 0 || ::poll(&changed, 1, static_cast<int>(left)) == 0) {
      return Status(StatusCode::kUnavailable, "another sluice-noded holds " + runtime_dir +
                                                  "/noded.lock and does not answer");
    }
  }
  return client;
}

}  // namespace sluice::cli
