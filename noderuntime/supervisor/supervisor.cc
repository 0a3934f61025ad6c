// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/supervisor/supervisor.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

#include "common/log/log.h"

namespace sluice::supervisor {
namespace {

constexpr int kBadUsage = 2;  // a daemon's exit code for a command line that it does not accept
constexpr int kBeatMs = 5'000;
constexpr int kEndMs = 10'000;

uint64_t NowNs() {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                   std::chrono::steady_clock::now().time_since_epoch())
                                   .count());
}

int LeftMs(uint64_t until_ns) {
  const uint64_t now = NowNs();
  return now < until_ns ? static_cast<int>((until_ns - now) / 1'000'000) : 0;
}

/// Those who lost their parent: keepers, and MPS servers, that have ended. Daemons are waited for
/// by their objects.
void ReapOrphans(const std::vector<pid_t>& daemons) {
  for (;;) {
    siginfo_t info = {};
    if (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) return;
    if (std::find(daemons.begin(), daemons.end(), info.si_pid) != daemons.end()) return;
    ::waitpid(info.si_pid, nullptr, WNOHANG);
  }
}

}  // namespace

Supervisor::Supervisor(Plan plan, Signs signs, std::vector<mps::Namespaces> namespaces)
    : plan_(std::move(plan)), signs_(std::move(signs)), namespaces_(std::move(namespaces)) {
  for (const uint32_t gpu : plan_.gpus) daemons_.emplace_back().gpu = gpu;
  for (const mps::Control& control : plan_.controls) controls_.emplace_back(control);
}

Status Supervisor::Run(int signals) {
  for (;;) {
    uint64_t now = NowNs();
    uint64_t wait_ns = uint64_t{kBeatMs} * 1'000'000;
    std::vector<pollfd> polled = {{signals, POLLIN, 0}};
    for (Daemon& daemon : daemons_) {
      if (!daemon.child.has_value() && daemon.next_ns <= now) Start(&daemon, now);
      if (!daemon.child.has_value()) wait_ns = std::min(wait_ns, daemon.next_ns - now);
      if (daemon.ready.valid()) polled.push_back({daemon.ready.get(), POLLIN, 0});
    }
    for (mps::ControlDaemon& control : controls_) {
      wait_ns = std::min(wait_ns, control.Start(now).value_or(wait_ns));
    }
    for (size_t i = 0; i < namespaces_.size(); ++i) {
      const auto next = namespaces_[i].Turn(now, controls_[i].pid() != 0);
      wait_ns = std::min(wait_ns, next.value_or(wait_ns));
      polled.push_back({namespaces_[i].fd(), POLLIN, 0});
    }
    ShowReady();
    signs_.Beat();
    const int wait_ms = static_cast<int>((wait_ns + 999'999) / 1'000'000);
    if (::poll(polled.data(), polled.size(), wait_ms) < 0 && errno != EINTR) {
      return Status::FromErrno(errno, "poll");
    }
    if ((polled[0].revents & POLLIN) != 0) {
      signalfd_siginfo info = {};
      const bool read = ::read(signals, &info, sizeof info) == sizeof info;
      if (read && info.ssi_signo != SIGCHLD) {
        EndAll();
        return {};
      }
    }
    now = NowNs();
    std::vector<pid_t> pids;
    for (Daemon& daemon : daemons_) {
      if (Status s = Look(&daemon, now); !s.ok()) {
        EndAll();
        return s;
      }
      if (daemon.child.has_value()) pids.push_back(daemon.child->pid());
    }
    for (mps::ControlDaemon& control : controls_) {
      control.Look(now);
      if (control.pid() != 0) pids.push_back(control.pid());
    }
    for (const mps::Namespaces& each : namespaces_) {
      if (each.pid() != 0) pids.push_back(each.pid());
    }
    ReapOrphans(pids);
  }
}

void Supervisor::Start(Daemon* daemon, uint64_t now_ns) {
  daemon->since_ns = now_ns;
  int ends[2];
  Status failed;
  if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) {
    failed = Status::FromErrno(errno, "pipe");
  } else {
    daemon->ready.reset(ends[0]);
    const UniqueFd write_end(ends[1]);
    cli::SpawnOptions spawn;
    const std::string gpu = std::to_string(daemon->gpu);
    spawn.argv = {plan_.noded,
                  "--gpu",
                  gpu,
                  "--runtime-dir",
                  plan_.runtime_dir + "/" + gpu,
                  "--ready-fd",
                  std::to_string(write_end.get())};
    spawn.argv.insert(spawn.argv.end(), plan_.arguments.begin(), plan_.arguments.end());
    spawn.environment = cli::Environment::Current();
    spawn.output = STDOUT_FILENO;
    spawn.error = STDERR_FILENO;
    spawn.keep = write_end.get();
    Result<cli::Child> child = cli::Child::Spawn(spawn);
    if (child.ok()) {
      daemon->child.emplace(std::move(*child));
      return;
    }
    failed = child.status();
  }
  daemon->ready.reset();
  const uint64_t wait = daemon->restarts.Ended(0);
  daemon->next_ns = now_ns + wait;
  logging::Error("GPU {}: {}; once more in {} ms", daemon->gpu, failed.message(), wait / 1'000'000);
}

Status Supervisor::Look(Daemon* daemon, uint64_t now_ns) {
  if (!daemon->child.has_value()) return {};
  ReadReady(daemon);
  const std::optional<cli::ExitStatus> ended = daemon->child->Wait(0);
  if (!ended.has_value()) return {};
  daemon->child.reset();
  daemon->ready.reset();
  daemon->serves = false;
  const std::string how =
      "GPU " + std::to_string(daemon->gpu) + ": its daemon ended, " + ended->Describe();
  if (ended->signal == 0 && ended->code == kBadUsage) {
    return Status(StatusCode::kInvalidArgument, how);
  }
  const uint64_t wait = daemon->restarts.Ended(now_ns - daemon->since_ns);
  daemon->next_ns = now_ns + wait;
  logging::Warn("{}; once more in {} ms", how, wait / 1'000'000);
  return {};
}

void Supervisor::ReadReady(Daemon* daemon) {
  if (!daemon->ready.valid()) return;
  char text[16];
  const ssize_t got = ::read(daemon->ready.get(), text, sizeof text);
  if (got < 0) return;  // not yet
  if (got > 0) daemon->serves = true;
  daemon->ready.reset();
}

void Supervisor::ShowReady() {
  const bool ready =
      std::all_of(daemons_.begin(), daemons_.end(), [](const Daemon& d) { return d.serves; });
  if (ready == shown_ready_) return;
  shown_ready_ = ready;
  signs_.SetReady(ready);
  if (ready) logging::Info("all {} daemons serve", daemons_.size());
}

void Supervisor::EndAll() {
  signs_.SetReady(false);
  for (Daemon& daemon : daemons_) {
    if (daemon.child.has_value()) daemon.child->Signal(SIGTERM);
  }
  for (mps::ControlDaemon& control : controls_) control.AskToEnd();
  const uint64_t until = NowNs() + uint64_t{kEndMs} * 1'000'000;
  for (Daemon& daemon : daemons_) {
    if (daemon.child.has_value()) (void)daemon.child->Wait(LeftMs(until));
    daemon.child.reset();  // kills who did not end
  }
  for (mps::ControlDaemon& control : controls_) control.End(LeftMs(until));
}

}  // namespace sluice::supervisor
