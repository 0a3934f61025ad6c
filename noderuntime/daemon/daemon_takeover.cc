// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// A daemon that follows one which died: the same jobs, the same memory, and nothing decided before
// everybody has said what he holds.
#include <sys/epoll.h>

#include <algorithm>
#include <utility>

#include "common/bytes.h"
#include "common/log/log.h"
#include "noderuntime/daemon/daemon.h"
#include "scheduler/policy/policies.h"

namespace sluice::noded {
namespace {

/// A job that launches nothing does not notice that it is asked. Later than this the others go on:
/// it keeps what it had, and may still come back.
constexpr uint64_t kResumePatienceNs = 10'000'000'000;
/// A launcher whose connection is not kept (it registered in the last moment) and whose program has
/// not touched the GPU yet.
constexpr uint64_t kOrphanNs = 60'000'000'000;

}  // namespace

Status Daemon::TakeOver(Takeover found, const flow::FlowOptions& options, flow::FlowSink* sink) {
  const uint64_t now = NowNs();
  notebook_.emplace(std::move(found.notebook));
  next_job_ = found.state.next_job;
  draining_ = found.state.draining;
  // In a container the next daemon may well have the same number.
  if (found.state.own_context && found.state.daemon_pid != ::getpid()) {
    predecessor_ = found.state.daemon_pid;
  }
  std::map<flow::JobId, flow::JobPages> pages;
  for (const KeptJob& kept : found.state.jobs) {
    if (Status s = TakeJob(kept, &found.jobs.at(kept.id), now); !s.ok()) return s;
    const JobEntry& job = jobs_.at(kept.id);
    if (!job.absent.has_value()) continue;
    const session::SharedPages& shared = job.absent->pages;
    pages[kept.id] = {&shared.mark(), &shared.client(), &shared.daemon()};
  }
  ByteReader in(found.state.flow);
  Result<std::unique_ptr<flow::Flow>> flow = flow::Flow::Restore(options, sink, &in, pages, now);
  if (!flow.ok()) return flow.status();
  flow_ = std::move(*flow);
  for (auto& [id, job] : jobs_) TakeSession(id, &job, &found.jobs.at(id), now);
  PublishHolders();
  recovering_ = true;
  recover_until_ns_ = now + kResumePatienceNs;
  for (auto& [id, job] : jobs_) {
    if (!job.absent.has_value()) continue;
    // A client that waits has its page exchanged for this one; the next daemon needs it too.
    Keep(keeper::Kind::kDaemonPage, id, job.absent->pages.daemon_fd());
    job.absent->pages.WantResume(true);
  }
  logging::Info("taking over from process {}: {} jobs, {} of {} free", found.state.daemon_pid,
                jobs_.size(), FormatBytes(flow_->ledger().free() * options_.unit_bytes),
                FormatBytes(pool_.bytes()));
  return {};
}

Status Daemon::TakeJob(const KeptJob& kept, KeptFds* fds, uint64_t now_ns) {
  const flow::JobId id = kept.id;
  JobEntry job;
  job.spec = {id, kept.name, kept.limit_units, kept.request_units};
  job.limit_bytes = kept.limit_bytes;
  job.request_bytes = kept.request_bytes;
  job.pid = kept.pid;
  job.session_number = kept.session;
  job.minor = kept.minor;
  job.spec.stitches = Stitches(job.minor);
  job.grant = kept.grant;
  job.pod = kept.pod;
  job.listener = std::move(fds->listener);
  if (job.listener.valid()) {
    const auto token =
        loop_.Add(job.listener.get(), EPOLLIN, [this, id](uint32_t) { OnListener(id); });
    if (!token.ok()) return token.status();
    job.listener_token = *token;
  }
  if (fds->launcher.valid()) {
    const Result<uint32_t> launcher = AddControl(std::move(fds->launcher), id);
    if (!launcher.ok()) return launcher.status();
    job.launcher = *launcher;
  } else if (!fds->holder() && job.grant.empty()) {
    job.orphan_until_ns = now_ns + kOrphanNs;
  }
  if (fds->whole_session()) {
    Result<session::SharedPages> pages = session::SharedPages::Restore(
        std::move(fds->mark_page), std::move(fds->client_page), std::move(fds->daemon_page));
    if (!pages.ok()) return pages.status();
    job.absent.emplace(std::move(*pages), std::move(fds->pidfd), std::move(fds->liveness));
  }
  jobs_.emplace(id, std::move(job));
  // It may have died before it could answer; one answer too many is read by nobody.
  const uint32_t launcher = jobs_.at(id).launcher;
  if (launcher != 0 && !AnswerRegistration(launcher, id, 0).ok()) {
    logging::Info("job {}: its launcher is gone", id);
  }
  return {};
}

/// What the flow knows of the job says what its descriptors are good for.
void Daemon::TakeSession(flow::JobId id, JobEntry* job, KeptFds* fds, uint64_t now_ns) {
  const scheduler::Job* known = flow_->ledger().Find(id);
  // Memory outside the pool waits for the last holder, too.
  const bool dying = known != nullptr
                         ? known->phase == scheduler::Phase::kDying
                         : flow_->Find(id) == nullptr && flow_->outside().charged(id) > 0;
  if (dying) {
    UniqueFd pidfd = std::move(fds->pidfd);
    UniqueFd liveness = std::move(fds->liveness);
    if (job->absent.has_value()) {
      pidfd = std::move(job->absent->pidfd);
      liveness = std::move(job->absent->liveness);
      job->absent.reset();
    }
    job->holder.emplace(job->pid, std::move(pidfd), std::move(liveness), now_ns);
    if (!job->holder->can_tell()) {
      logging::Error(
          "job {} '{}': what shows the end of process {} and its children was lost; its memory "
          "stays in quarantine",
          id, job->spec.name, job->pid);
    }
    return;
  }
  if (job->absent.has_value()) WatchAbsent(id, job);
}

void Daemon::WatchAbsent(flow::JobId id, JobEntry* job) {
  const auto token = loop_.Add(job->absent->pidfd.get(), EPOLLIN,
                               [this, id](uint32_t) { DropAbsent(id, "its process ended"); });
  if (token.ok()) job->absent->pidfd_token = *token;
}

void Daemon::PublishHolders() {
  if (!oracle_.has_value()) return;
  for (const scheduler::Span& span : flow_->ledger().map().spans()) {
    const auto job = jobs_.find(span.holder);
    // The GPU is done with spare units, and nobody may touch them.
    const bool somebody = job != jobs_.end() && span.state != scheduler::UnitState::kSpare;
    oracle_->SetHolder(span.offset, span.length, somebody ? job->second.pid : 0);
  }
  oracle_->Publish();
}

void Daemon::ResumeSession(uint32_t id, Client* client, const session::Declaration& declared) {
  const flow::JobId job_id = client->job;
  JobEntry& job = jobs_.at(job_id);
  if (!job.absent.has_value() || job.session != 0 || declared.session != job.session_number ||
      client->session->pid() != job.pid) {
    return CloseClient(id, "there is no session of this process to go on with");
  }
  const uint64_t now = NowNs();
  AbsentSession absent = std::move(*job.absent);
  job.absent.reset();
  loop_.Remove(absent.pidfd_token);
  // Before it is told: it would come again otherwise.
  absent.pages.WantResume(false);
  const flow::JobPages pages = {&absent.pages.mark(), &absent.pages.client(),
                                &absent.pages.daemon()};
  job.session = id;
  job.started = true;
  if (flow_->Find(job_id) == nullptr) flow_->Start(job.spec, pages, now);
  if (Status s = client->session->Resume(declared.session, std::move(absent.pages),
                                         std::move(absent.liveness));
      !s.ok()) {
    // It hung up before it was answered. Whatever it said, it may come again and say more.
    job.session = 0;
    job.started = false;
    absent.pages = client->session->TakePages();
    absent.liveness = client->session->TakeLiveness();
    absent.pages.WantResume(true);
    job.absent.emplace(std::move(absent));
    WatchAbsent(job_id, &job);
    return CloseClient(id, s.message());
  }
  if (Status s = flow_->Resume(job_id, declared, now); !s.ok()) return CloseClient(id, s.message());
  logging::Info("job {} '{}': session of process {} goes on, {} held", job_id, job.spec.name,
                job.pid, FormatBytes(flow_->ledger().held(job_id) * options_.unit_bytes));
  registry_changed_ = true;
  UpdateInterest(client);
}

void Daemon::DropAbsent(flow::JobId id, const std::string& reason) {
  const auto found = jobs_.find(id);
  if (found == jobs_.end() || !found->second.absent.has_value()) return;
  JobEntry& job = found->second;
  logging::Info("job {}: session of process {} closed: {}", id, job.pid, reason);
  const uint64_t now = NowNs();
  loop_.Remove(job.absent->pidfd_token);
  const bool holds = flow_->Die(id, now);
  if (holds) {
    job.holder.emplace(job.pid, std::move(job.absent->pidfd), std::move(job.absent->liveness), now);
    next_tick_ns_ = now;
  }
  job.absent.reset();
  registry_changed_ = true;
  DropKept(id, holds);
  RemoveJobIfOver(id);
}

/// Whether anything stands in the way of the first decision.
bool Daemon::StillRecovering(uint64_t now_ns) {
  // It may still be overwriting memory that nobody holds.
  if (predecessor_ != 0 && device_->IsUsedBy(predecessor_)) return true;
  predecessor_ = 0;
  if (now_ns >= recover_until_ns_) return false;
  return std::any_of(jobs_.begin(), jobs_.end(), [this](const auto& entry) {
    const JobEntry& job = entry.second;
    return job.absent.has_value() && job.minor >= protocol::kResumeMinor &&
           flow_->Find(entry.first) != nullptr;
  });
}

void Daemon::Recover(uint64_t now_ns) {
  if (!recovering_ || StillRecovering(now_ns)) return;
  recovering_ = false;
  for (const auto& [id, job] : jobs_) {
    if (!job.absent.has_value()) continue;
    logging::Warn("job {} '{}': process {} has not come back yet; it keeps what it had", id,
                  job.spec.name, job.pid);
  }
  logging::Info("taken over: {} of {} free",
                FormatBytes(flow_->ledger().free() * options_.unit_bytes),
                FormatBytes(pool_.bytes()));
  flow_->Thaw(now_ns);
  if (options_.policy == scheduler::kSpatialPolicy && flow_->policy_name() != options_.policy) {
    options_.policy = flow_->policy_name();
    logging::Warn("policy spatial: the limits of these jobs cannot all be reserved; {} decides",
                  options_.policy);
  }
}

}  // namespace sluice::noded
