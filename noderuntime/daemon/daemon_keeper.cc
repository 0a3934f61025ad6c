// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// What the next daemon will need, put where it outlives this one.
#include <sys/epoll.h>
#include <unistd.h>

#include <utility>

#include "common/log/log.h"
#include "noderuntime/daemon/daemon.h"

namespace sluice::noded {

using keeper::Kind;

namespace {

constexpr Kind kPages[] = {Kind::kMarkPage, Kind::kClientPage, Kind::kDaemonPage};
constexpr Kind kHolder[] = {Kind::kLiveness, Kind::kPidfd};

}  // namespace

/// Waits for it: before this daemon serves anybody, and at its end.
Status Daemon::StartKeeper() {
  const bool launched = keeper_launched_.valid();
  if (launched) loop_.Remove(keeper_token_);
  const UniqueFd ready = std::move(keeper_launched_);
  const auto linger_s = static_cast<uint32_t>(options_.keeper_linger_s);
  return TakeKeeper(
      launched ? keeper::KeeperClient::ConnectLaunched(ready, options_.keeper, options_.runtime_dir,
                                                       keeper::KeeperClient::kStartTimeoutMs)
               : keeper::KeeperClient::Start(options_.keeper, options_.runtime_dir, linger_s));
}

/// What it is to keep is all here.
Status Daemon::TakeKeeper(Result<keeper::KeeperClient> started) {
  Status status = started.status();
  if (status.ok()) {
    keeper_.emplace(std::move(*started));
    status = WatchKeeper();
    if (status.ok()) status = StoreEverything();
    if (status.ok()) {
      if (last_keeper_.has_value()) last_keeper_->Dismiss();
      last_keeper_.reset();
      return {};
    }
    loop_.Remove(keeper_token_);
    keeper_->Dismiss();
    keeper_.reset();
  }
  MissKeeper(status);
  return status;
}

Status Daemon::WatchKeeper() {
  const auto token = loop_.Add(keeper_->fd(), EPOLLRDHUP, [this](uint32_t) {
    LoseKeeper(Status(StatusCode::kUnavailable, "it ended"));
  });
  keeper_token_ = token.ok() ? *token : 0;
  if (token.ok()) keeper_losses_.Got(NowNs());
  return token.status();
}

/// Said once, and not again with each attempt that fails.
void Daemon::MissKeeper(const Status& why) {
  keeper_losses_.Lost(NowNs());
  if (std::exchange(keeper_missed_, true)) return;
  logging::Error(
      "no keeper: if this daemon is killed now, its jobs keep what they hold and get no "
      "more ({}); it is tried again",
      why.message());
}

/// Another one comes in its place, in a turn of its own: what is just being done need not wait.
void Daemon::LoseKeeper(const Status& why) {
  if (!keeper_.has_value()) return;
  logging::Warn("the keeper: {}", why.message());
  loop_.Remove(keeper_token_);
  if (last_keeper_.has_value()) last_keeper_->Dismiss();
  last_keeper_ = std::exchange(keeper_, std::nullopt);
  keeper_losses_.Lost(NowNs());
}

bool Daemon::NeedsKeeper() const {
  return !options_.keeper.empty() && !keeper_.has_value() && !keeper_launched_.valid() &&
         !stopping_;
}

/// Nobody waits for a keeper that begins: it says when it listens. Until it does that, ends or is
/// given up there is no other one: each puts its socket in the place of the last. One that was
/// given up sees that nobody reads what it would say, and ends.
void Daemon::ReplaceKeeper(uint64_t now_ns) {
  if (keeper_launched_.valid() && now_ns >= keeper_late_ns_) {
    loop_.Remove(keeper_token_);
    keeper_launched_.reset();
    MissKeeper(Status(StatusCode::kUnavailable, options_.keeper + " does not say that it listens"));
  }
  if (!NeedsKeeper() || now_ns < keeper_losses_.due_ns()) return;
  Result<UniqueFd> launched = keeper::KeeperClient::Launch(
      options_.keeper, options_.runtime_dir, static_cast<uint32_t>(options_.keeper_linger_s));
  if (!launched.ok()) return MissKeeper(launched.status());
  const auto token = loop_.Add(launched->get(), EPOLLIN, [this](uint32_t) {
    if (!StartKeeper().ok()) return;
    keeper_missed_ = false;
    logging::Info("another keeper has everything, process {}", keeper_->pid());
  });
  if (!token.ok()) return MissKeeper(token.status());
  keeper_token_ = *token;
  keeper_launched_ = std::move(*launched);
  keeper_late_ns_ = now_ns + uint64_t{keeper::KeeperClient::kStartTimeoutMs} * 1'000'000;
}

Status Daemon::StoreEverything() {
  if (!notebook_.has_value()) {
    Result<keeper::Notebook> made = keeper::Notebook::Create();
    if (!made.ok()) return made.status();
    notebook_.emplace(std::move(*made));
  }
  Status status = keeper_->Store({Kind::kPoolHandle, 0, 0}, access_.handles);
  for (auto& [id, job] : jobs_) {
    if (status.ok() && job.listener.valid()) {
      status = keeper_->Store(Kind::kListener, id, job.listener.get());
    }
    const auto launcher = controls_.find(job.launcher);
    if (status.ok() && launcher != controls_.end()) {
      status = keeper_->Store(Kind::kLauncher, id, launcher->second.connection.fd());
    }
    const Client* client = SessionOf(id);
    if (status.ok() && client != nullptr) {
      status = StoreSession(id, client->session->pages(), client->session->liveness_fd(),
                            client->session->peer().pidfd.get());
    } else if (status.ok() && job.absent.has_value()) {
      status =
          StoreSession(id, job.absent->pages, job.absent->liveness.get(), job.absent->pidfd.get());
    } else if (status.ok() && job.holder.has_value()) {
      if (job.holder->liveness() >= 0) {
        status = keeper_->Store(Kind::kLiveness, id, job.holder->liveness());
      }
      if (status.ok() && job.holder->pidfd() >= 0) {
        status = keeper_->Store(Kind::kPidfd, id, job.holder->pidfd());
      }
    }
  }
  // Last: who finds it finds the rest.
  SaveState();
  if (status.ok()) status = keeper_->Store(Kind::kState, 0, notebook_->fd());
  return status;
}

Status Daemon::StoreSession(flow::JobId job, const session::SharedPages& pages, int liveness,
                            int pidfd) {
  const int fds[] = {pages.mark_fd(), pages.client_fd(), pages.daemon_fd()};
  Status status;
  for (size_t i = 0; i < std::size(fds) && status.ok(); ++i) {
    status = keeper_->Store(kPages[i], job, fds[i]);
  }
  if (status.ok()) status = keeper_->Store(Kind::kLiveness, job, liveness);
  if (status.ok()) status = keeper_->Store(Kind::kPidfd, job, pidfd);
  return status;
}

void Daemon::Keep(Kind kind, flow::JobId job, int fd) {
  if (!keeper_.has_value()) return;
  if (Status s = keeper_->Store(kind, job, fd); !s.ok()) LoseKeeper(s);
}

void Daemon::KeepSession(flow::JobId job, const session::Session& session) {
  if (!keeper_.has_value()) return;
  const Status status =
      StoreSession(job, session.pages(), session.liveness_fd(), session.peer().pidfd.get());
  if (!status.ok()) LoseKeeper(status);
}

/// What the next daemon finds in the notebook must not need what is dropped here: it would take a
/// session without descriptors for one that nobody can speak for, and its holder for one whose end
/// cannot be seen.
void Daemon::DropKept(flow::JobId job, bool holder_stays) {
  if (!keeper_.has_value()) return;
  SaveState();
  Status status;
  for (const Kind kind : kPages) {
    if (status.ok()) status = keeper_->Drop(kind, job);
  }
  for (const Kind kind : kHolder) {
    if (status.ok() && !holder_stays) status = keeper_->Drop(kind, job);
  }
  if (!status.ok()) LoseKeeper(status);
}

void Daemon::DropKeptJob(flow::JobId job) {
  if (!keeper_.has_value()) return;
  SaveState();
  Status status = keeper_->Drop(Kind::kListener, job);
  if (status.ok()) status = keeper_->Drop(Kind::kLauncher, job);
  if (!status.ok()) LoseKeeper(status);
  DropKept(job, false);
}

void Daemon::WriteRegistry() {
  KeptState state;
  state.unit_bytes = options_.unit_bytes;
  state.handle_bytes = options_.handle_bytes;
  state.handles = static_cast<uint32_t>(access_.handles.size());
  state.gpu = options_.gpu;
  state.device_uuid = access_.device_uuid;
  state.daemon_pid = ::getpid();
  state.own_context = options_.poison || has_moved_;
  state.next_job = next_job_;
  if (policy_was_set_) {
    state.policy = options_.policy;
    state.lanes = options_.lanes;
  }
  state.draining = draining_;
  for (const auto& [id, job] : jobs_) {
    state.jobs.push_back({id, job.spec.name, job.limit_bytes, job.request_bytes, job.spec.limit,
                          job.spec.request, job.pid, job.session_number, job.minor, job.grant,
                          job.pod});
  }
  registry_bytes_.Clear();
  noded::WriteRegistry(state, &registry_bytes_);
}

/// A copy into shared memory, no system call: done before anybody is told of a grant, and at the
/// end of each turn in which something changed.
void Daemon::SaveState() {
  if (!notebook_.has_value()) return;
  saved_changes_ = flow_->changes();
  if (std::exchange(registry_changed_, false)) WriteRegistry();
  flow_bytes_.Clear();
  flow_->Save(&flow_bytes_);
  state_bytes_.Clear();
  state_bytes_.Append(registry_bytes_.bytes());
  state_bytes_.PutBytes(flow_bytes_.bytes());
  if (!notebook_->Write(state_bytes_.bytes()) && !std::exchange(too_large_, true)) {
    logging::Error("the state of this daemon is too large to be kept ({} bytes)",
                   state_bytes_.bytes().size());
  }
}

}  // namespace sluice::noded
