// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// Who uses the GPU past this daemon, on a node of a cluster: seen in the driver's list of
// processes, counted, and told to the pod. Nobody is stopped: what such a process takes lies
// outside the pool, where the reserve is.
#include <poll.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "common/log/log.h"
#include "noderuntime/daemon/daemon.h"
#include "noderuntime/identity/process.h"

namespace sluice::noded {
namespace {

constexpr size_t kMaxKnownProcesses = 64;

UniqueFd Hold(pid_t pid) { return UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))); }

}  // namespace

Status Daemon::WatchProcesses() {
  auto watch = bypass::ProcessWatch::Start(device_->info().uuid);
  if (!watch.ok()) {
    // Not what the daemon is for: everybody else is served without it.
    if (options_.grants.empty()) return {};
    logging::Warn("who uses the GPU past this daemon is not looked for: {}",
                  watch.status().message());
    return {};
  }
  processes_ = std::move(*watch);
  const auto token = loop_.Add(processes_->fd(), EPOLLIN, [this](uint32_t) { LookAtProcesses(); });
  if (!token.ok()) return token.status();
  processes_token_ = *token;
  // At a workstation programs may use the GPU as they like, and nobody counts them.
  if (!options_.grants.empty()) bypassed_.emplace();
  return {};
}

void Daemon::LookAtProcesses() {
  const std::optional<bypass::ProcessWatch::Seen> seen = processes_->Take();
  if (!seen.has_value()) return;
  used_bytes_ = seen->used_bytes;
  if (!bypassed_.has_value() || !seen->pids.has_value()) return;
  for (const pid_t pid : bypass_.Look(*seen->pids, KnownPids())) FoundBypassing(pid);
}

std::set<pid_t> Daemon::KnownPids() {
  std::set<pid_t> known = {::getpid(), predecessor_};
  for (auto& [id, job] : jobs_) {
    ForgetEnded(&job);
    for (const KnownProcess& process : job.processes) known.insert(process.pid);
    if (job.session != 0 || job.absent.has_value() || job.holder.has_value()) known.insert(job.pid);
  }
  return known;
}

void Daemon::FoundBypassing(pid_t pid) {
  const UniqueFd held = Hold(pid);
  // The daemon before this one, or NVIDIA's own server beside it.
  if (held.valid() && identity::InOwnContainer(pid, held.get())) return bypass_.Forgive(pid);
  const auto container =
      held.valid() ? identity::ContainerOfProcess(pid, held.get()) : std::nullopt;
  const auto job = std::find_if(jobs_.begin(), jobs_.end(), [&](const auto& entry) {
    return container.has_value() && !entry.second.grant.empty() &&
           entry.second.pod == container->pod;
  });
  // As it was asked for.
  if (job != jobs_.end() && job->second.left_alone) return bypass_.Forgive(pid);
  ++(container.has_value() ? bypassed_->pods : bypassed_->others);
  std::string text = "process " + std::to_string(pid) + " uses the GPU past Sluice";
  if (job == jobs_.end()) {
    text += container.has_value() ? " and is of pod " + container->pod + ", which has no grant here"
                                  : " and is in no pod";
    return SayOfLaunchers(logging::Level::kWarn, text);
  }
  text +=
      ": its memory is not in the pod's grant and not lent to anybody. Sluice's library is not "
      "in it: LD_PRELOAD is not what the container was given, or the program is linked "
      "statically or with musl";
  SayOfJob(job->first, logging::Level::kWarn, text);
  if (Status s = grants_->ReportBypass(job->second.grant, text); !s.ok()) {
    logging::Error("{}", s.message());
  }
}

/// Whoever comes to a job's socket has the library, and keeps it.
void Daemon::Remember(const session::Peer& peer, JobEntry* job) {
  ForgetEnded(job);
  const bool known =
      std::any_of(job->processes.begin(), job->processes.end(),
                  [&peer](const KnownProcess& process) { return process.pid == peer.pid; });
  if (known) return;
  if (job->processes.size() >= kMaxKnownProcesses) job->processes.erase(job->processes.begin());
  UniqueFd held = Hold(peer.pid);
  // It may have ended already.
  if (held.valid()) job->processes.push_back({peer.pid, std::move(held)});
}

void Daemon::ForgetEnded(JobEntry* job) {
  std::erase_if(job->processes, [](const KnownProcess& process) {
    pollfd ended = {process.pidfd.get(), POLLIN, 0};
    return ::poll(&ended, 1, 0) != 0;
  });
}

}  // namespace sluice::noded
