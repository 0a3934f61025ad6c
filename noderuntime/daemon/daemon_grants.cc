// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// Grants of containers: each is a job whose socket lies in the container's folder. Who reaches it
// may use the grant; nothing is reserved before somebody does. The record says what it is worth, so
// nothing that a container says can make it more.
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "common/bytes.h"
#include "common/log/log.h"
#include "common/nvml.h"
#include "common/printable.h"
#include "noderuntime/daemon/daemon.h"
#include "noderuntime/identity/process.h"

namespace sluice::noded {
namespace {

/// Of a pool that came from an earlier daemon without anybody in it. No namespace has this name.
constexpr char kUnknownGroup[] = "(of an earlier daemon)";

/// What the daemon says of a limit, said of the annotation that asked for it.
std::string OfAnnotation(uint64_t bytes, const std::string& text) {
  const std::string size = FormatBytes(bytes);
  size_t own = 0;
  for (const std::string& begins : {"limit " + size + ": ", std::string("limit: ")}) {
    if (text.starts_with(begins)) own = begins.size();
  }
  return "sluice.dev/memory-limit " + size + ": " + text.substr(own);
}

}  // namespace

Status Daemon::WatchGrants() {
  if (options_.grants.empty()) return {};
  Result<grants::GrantWatch> watch =
      grants::GrantWatch::Open(options_.grants, DeviceUuidText(device_->info().uuid));
  if (!watch.ok()) return watch.status().Annotate("--grants");
  grants_.emplace(std::move(*watch));
  draining_ = draining_ || grants_->drained();
  const auto token = loop_.Add(grants_->fd(), EPOLLIN, [this](uint32_t) { ReadGrants(); });
  if (!token.ok()) return token.status();
  if (adopted_ && SomebodyOfTheGroup(0) == nullptr) pool_group_ = kUnknownGroup;
  const auto changes = grants_->Read();
  TakeGrants(changes);
  // Those of the daemon before this one that were taken back while there was none.
  std::vector<std::string> over;
  for (const auto& [id, job] : jobs_) {
    const bool there =
        std::any_of(changes.added.begin(), changes.added.end(),
                    [&job = job](const auto& grant) { return grant.id == job.grant; });
    if (!job.grant.empty() && !there) over.push_back(job.grant);
  }
  for (const std::string& id : over) EndGrant(id);
  EndLeavingAlone();
  return {};
}

void Daemon::ReadGrants() {
  TakeGrants(grants_->Read());
  EndLeavingAlone();
}

void Daemon::TakeGrants(const grants::GrantWatch::Changes& changes) {
  for (const std::string& error : changes.errors) logging::Error("{}", error);
  for (const GrantRecord& grant : changes.added) {
    if (Status s = AddGrant(grant); !s.ok()) logging::Error("grant {}: {}", grant.id, s.message());
  }
  for (const auto& [id, terms] : changes.terms) TakeTerms(id, terms);
  for (const std::string& id : changes.removed) EndGrant(id);
}

Status Daemon::AddGrant(const GrantRecord& grant) {
  session::RegisterFrame wanted;
  wanted.gpu = options_.gpu;
  wanted.name = "grant " + grant.id.substr(0, 8);
  wanted.request_bytes = grant.bytes;
  wanted.limit_bytes = std::max(grants_->LimitOf(grant.id, grant.bytes), grant.bytes);
  // Kubelet has seen to it that the grants fit beside each other. Who is there at this moment,
  // perhaps a neighbour that is just ending, perhaps the job itself, is asked when a program
  // begins.
  const Result<flow::JobSpec> spec = CheckAmounts(wanted);
  if (!spec.ok() && !HasNoPool()) logging::Error("grant {}: {}", grant.id, spec.status().message());
  const auto known = FindGrant(grant.id);
  const bool is_new = known == jobs_.end();
  const flow::JobId id = is_new ? next_job_++ : known->first;
  JobEntry& job = jobs_[id];
  // Said to who comes: a container has no other place to read it.
  job.refusal = spec.status().message();
  job.granule_bytes = grant.bytes / grant.devices.size();
  // From the daemon before this one, with its listener.
  if (job.listener.valid()) return {};
  if (is_new) {
    if (spec.ok()) job.spec = *spec;
    job.spec.id = id;
    job.spec.name = wanted.name;
    job.limit_bytes = wanted.limit_bytes;
    job.request_bytes = wanted.request_bytes;
    job.grant = grant.id;
    SayOfLaunchers(logging::Level::kInfo, "job " + std::to_string(id) + ": grant " + grant.id +
                                              " of " + FormatBytes(grant.bytes));
  }
  registry_changed_ = true;
  const Status listens = ListenForGrant(id, grant.id);
  if (!listens.ok() && is_new) jobs_.erase(id);
  return listens;
}

std::map<flow::JobId, JobEntry>::iterator Daemon::FindGrant(const std::string& grant) {
  return std::find_if(jobs_.begin(), jobs_.end(),
                      [&grant](const auto& entry) { return entry.second.grant == grant; });
}

Status Daemon::ListenForGrant(flow::JobId id, const std::string& grant) {
  const std::string path = grants_->SocketOf(grant);
  // Of a daemon that died without a keeper.
  ::unlink(path.c_str());
  Result<UniqueFd> listener = session::ListenAt(path);
  if (!listener.ok()) return listener.status();
  // Programs in containers run as anybody; only their container has the folder.
  if (::chmod(path.c_str(), 0666) != 0) return Status::FromErrno(errno, path);
  JobEntry& job = jobs_.at(id);
  job.listener = std::move(*listener);
  const auto token =
      loop_.Add(job.listener.get(), EPOLLIN, [this, id](uint32_t) { OnListener(id); });
  if (!token.ok()) return token.status();
  job.listener_token = *token;
  Keep(keeper::Kind::kListener, id, job.listener.get());
  SaveState();
  return {};
}

Status Daemon::MayUseGrant(JobEntry* job, const session::Peer& peer) {
  if (!job->refusal.empty()) return Status(StatusCode::kFailedPrecondition, job->refusal);
  if (job->grant.empty()) return {};
  const bool unknown = job->pod.empty();
  const Status may = identity::CheckPod(
      peer.pid, identity::ContainerOfProcess(peer.pid, peer.pidfd.get()), &job->pod);
  if (unknown && !job->pod.empty()) registry_changed_ = true;
  return may;
}

/// What a pod asks for may be wrong, or not to be had now. Who runs goes on as before then, and who
/// comes is told.
void Daemon::TakeTerms(const std::string& grant, const GrantTerms& terms) {
  const auto found = FindGrant(grant);
  if (found == jobs_.end()) return;
  const flow::JobId id = found->first;
  JobEntry& job = found->second;
  job.terms = terms;
  grants_->DropOverruled(grant, terms.limit_bytes);
  const Status applied = terms.inject ? ApplyTerms(id, &job, terms) : LeaveAlone(id, &job, terms);
  const bool runs = job.started || job.absent.has_value();
  if (runs && !pool_group_.has_value()) pool_group_ = terms.group;
  const bool other_group =
      !job.left_alone && pool_group_.has_value() && *pool_group_ != terms.group;
  // Before its program begins. Where there is no pool, there is nobody's to renew.
  if (!runs && other_group && !HasNoPool() && SomebodyOfTheGroup(id) == nullptr) RenewPoolOfGroup();
  // Between two sessions, too, it goes on as before.
  job.refusal = applied.ok() || runs || flow_->Rests(id) ? terms.refusal : applied.message();
  ReportTerms(&job, terms.refusal.empty() ? applied.message() : terms.refusal);
  AnswerTerms(job);
  SayOfLaunchers(logging::Level::kInfo, "job " + std::to_string(id) + ": grant " + grant + " is " +
                                            terms.job + "'s, limit " +
                                            FormatBytes(job.limit_bytes));
  registry_changed_ = true;
  std::vector<uint32_t> waiting;
  for (const auto& [client_id, client] : clients_) {
    if (client.job == id && client.waits_for_terms) waiting.push_back(client_id);
  }
  for (const uint32_t client_id : waiting) {
    const auto client = clients_.find(client_id);
    client->second.waits_for_terms = false;
    client->second.asks ? AnswerAsked(client_id, &client->second)
                        : Open(client_id, &client->second);
  }
}

Status Daemon::ApplyTerms(flow::JobId id, JobEntry* job, const GrantTerms& terms) {
  job->spec.name = Printable(terms.job);
  if (!terms.pod.empty()) job->pod = terms.pod;
  if (!terms.refusal.empty()) return {};
  if (job->left_alone) {
    return Status(StatusCode::kFailedPrecondition,
                  "sluice.dev/inject: allowed: what it was when the container began ('false')");
  }
  if (terms.host_memory_bytes > host_tier_.capacity_bytes()) {
    return Status(StatusCode::kFailedPrecondition,
                  "sluice.dev/host-memory " + FormatBytes(*terms.host_memory_bytes) +
                      ": allowed: up to " + FormatBytes(host_tier_.capacity_bytes()) +
                      ", which all jobs of this GPU have together");
  }
  const uint64_t limit = grants_->LimitOf(job->grant, terms.limit_bytes);
  const Status applied = ApplyLimit(id, job, std::max(limit, job->request_bytes), terms.priority);
  // An operator's order is not the annotation's fault, nor are granules beyond the pool.
  const bool others = limit != terms.limit_bytes || job->request_bytes > pool_.bytes();
  if (applied.ok() || others) return applied;
  return Status(applied.code(), OfAnnotation(terms.limit_bytes, applied.message()));
}

void Daemon::Report(const JobEntry& job, const std::string& text) {
  if (!grants_.has_value() || job.grant.empty()) return;
  if (Status s = grants_->Report(job.grant, text); !s.ok()) logging::Error("{}", s.message());
}

/// Stays where what is said of one of its processes goes.
void Daemon::ReportTerms(JobEntry* job, const std::string& text) {
  job->terms_report = text;
  Report(*job, text);
}

/// Behind the limit, so that the plugin never keeps less room than the job may take.
void Daemon::AnswerTerms(const JobEntry& job) {
  if (!grants_.has_value() || job.grant.empty() || !job.terms.has_value()) return;
  const Status s = grants_->Answer(job.grant, *job.terms, job.limit_bytes);
  if (!s.ok()) logging::Error("{}", s.message());
}

/// Memory that one group has had is never another's: whoever kept a way to it could go on reading
/// and writing it.
Status Daemon::EnterGroup(flow::JobId id, const JobEntry& job) {
  if (job.grant.empty() || !job.terms.has_value()) return {};
  const std::string& group = job.terms->group;
  if (!pool_group_.has_value()) pool_group_ = group;
  if (*pool_group_ == group) return {};
  if (const JobEntry* other = SomebodyOfTheGroup(id)) {
    return Status(StatusCode::kFailedPrecondition,
                  "this GPU's memory is shared by jobs of group '" + *pool_group_ + "' ('" +
                      other->spec.name + "'), and this one is of group '" + group +
                      "'; it can begin when they have ended");
  }
  RenewPoolOfGroup();
  return Status(StatusCode::kUnavailable,
                "this GPU's memory was that of group '" + *pool_group_ +
                    "' until now and is being made anew; it is there in a moment");
}

const JobEntry* Daemon::SomebodyOfTheGroup(flow::JobId but) const {
  for (const auto& [id, job] : jobs_) {
    const bool uses = job.session != 0 || job.holder.has_value() || job.absent.has_value();
    if (id != but && uses) return &job;
  }
  return nullptr;
}

void Daemon::RenewPoolOfGroup() {
  RenewPool("the pool was group '" + pool_group_.value_or("") + "'s");
}

/// By a new daemon: nothing of this one, whatever it has mapped, is left then. It gets no pool
/// before the GPU has the old one's memory back, which is the proof that nobody holds it any more.
void Daemon::RenewPool(const std::string& why) {
  logging::Info("{}: ending, so that the next daemon makes another pool", why);
  renews_pool_ = true;
  stopping_ = true;
}

/// Its container is gone, or will be. Whoever still uses the GPU keeps what he has until his end.
void Daemon::EndGrant(const std::string& grant) {
  const auto found = FindGrant(grant);
  if (found == jobs_.end()) return;
  const flow::JobId id = found->first;
  found->second.grant.clear();
  registry_changed_ = true;
  SayOfLaunchers(logging::Level::kInfo, "job " + std::to_string(id) + ": its grant was taken back");
  RemoveJobIfOver(id);
}

}  // namespace sluice::noded
