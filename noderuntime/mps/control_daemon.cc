// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/mps/control_daemon.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <utility>

#include "common/log/log.h"
#include "common/mps_folder.h"
#include "common/unique_fd.h"

namespace sluice::mps {
namespace {

/// Also where it was there already: whoever made it may have had another umask.
Status MakeFolder(const std::string& path, mode_t mode) {
  std::error_code failed;
  std::filesystem::create_directories(path, failed);
  if (failed) return Status::FromErrno(failed.value(), path);
  if (::chmod(path.c_str(), mode) != 0) return Status::FromErrno(errno, path);
  return {};
}

cli::SpawnOptions Spawning(Command command) {
  cli::SpawnOptions spawn;
  spawn.argv = std::move(command.argv);
  spawn.environment = std::move(command.environment);
  spawn.output = STDOUT_FILENO;
  spawn.error = STDERR_FILENO;
  return spawn;
}

}  // namespace

Status CheckProgram(const std::string& program) {
  struct stat info = {};
  const bool file = ::stat(program.c_str(), &info) == 0 && S_ISREG(info.st_mode);
  if (file && ::access(program.c_str(), X_OK) == 0) return {};
  return Status(StatusCode::kInvalidArgument,
                "--mps-control '" + program + "': allowed: a program that can be run here" +
                    (file ? "; this file cannot" : "; there is no such file") +
                    " (--compute timeslice needs none)");
}

std::optional<uint64_t> ControlDaemon::Start(uint64_t now_ns) {
  if (child_.has_value()) return std::nullopt;
  if (now_ns < next_ns_) return next_ns_ - now_ns;
  since_ns_ = now_ns;
  if (const Status started = Spawn(); !started.ok()) {
    const uint64_t wait = restarts_.Ended(0);
    next_ns_ = now_ns + wait;
    logging::Error("{}: no MPS control daemon: {}; once more in {} ms", control_.gpu,
                   started.message(), wait / 1'000'000);
    return wait;
  }
  logging::Info("{}: MPS control daemon started", control_.gpu);
  return std::nullopt;
}

Status ControlDaemon::Spawn() {
  if (Status s = MakeFolders(); !s.ok()) return s;
  Result<cli::Child> child =
      cli::Child::Spawn(Spawning(StartCommand(control_, cli::Environment::Current())));
  if (!child.ok()) return child.status();
  child_.emplace(std::move(*child));
  return {};
}

Status ControlDaemon::MakeFolders() const {
  if (Status s = MakeFolder(control_.dir, 0711); !s.ok()) return s;
  if (control_.v3) {
    // Of the containers' folders; a name there is a secret of nobody.
    if (Status s = MakeFolder(MpsJobsFolder(control_.dir), 0711); !s.ok()) return s;
  }
  if (Status s = MakeFolder(MpsPipeFolder(control_.dir, control_.gpu), 0755); !s.ok()) return s;
  return MakeFolder(MpsLogFolder(control_.dir, control_.gpu), 0700);
}

void ControlDaemon::Look(uint64_t now_ns) {
  if (!child_.has_value()) return;
  const std::optional<cli::ExitStatus> ended = child_->Wait(0);
  if (!ended.has_value()) return;
  child_.reset();
  const uint64_t wait = restarts_.Ended(now_ns - since_ns_);
  next_ns_ = now_ns + wait;
  logging::Warn("{}: its MPS control daemon ended, {}; {} may say why; once more in {} ms",
                control_.gpu, ended->Describe(), MpsLogFolder(control_.dir, control_.gpu),
                wait / 1'000'000);
}

void ControlDaemon::AskToEnd() {
  if (!child_.has_value()) return;
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return;  // then the signal has to do
  const UniqueFd read_end(ends[0]);
  const UniqueFd write_end(ends[1]);
  constexpr ssize_t kLength = sizeof kQuit - 1;
  if (::write(write_end.get(), kQuit, kLength) != kLength) return;
  cli::SpawnOptions spawn = Spawning(QuitCommand(control_, cli::Environment::Current()));
  spawn.input = read_end.get();
  Result<cli::Child> quit = cli::Child::Spawn(spawn);
  if (quit.ok()) quit_.emplace(std::move(*quit));
}

void ControlDaemon::End(int timeout_ms) {
  if (child_.has_value() && !child_->Wait(timeout_ms / 2).has_value()) {
    logging::Warn("{}: its MPS control daemon does not quit", control_.gpu);
    child_->Signal(SIGTERM);
    (void)child_->Wait(timeout_ms / 2);
  }
  child_.reset();  // kills who did not end
  quit_.reset();
}

}  // namespace sluice::mps
