// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// A container that has all of a GPU and asks for it as it is (sluice.dev/inject "false"): the
// library does nothing in its processes, and the daemon has no pool as long as it is there, but for
// one handle, without which there would be none to speak of. The pool comes and goes as it does
// with groups: this daemon ends, and the next one makes what is right then.

#include <algorithm>
#include <cstring>

#include "common/bytes.h"
#include "common/log/log.h"
#include "common/nvml.h"
#include "noderuntime/daemon/daemon.h"
#include "noderuntime/daemon/job_figures.h"
#include "noderuntime/identity/process.h"

namespace sluice::noded {
namespace {

constexpr char kField[] = "sluice.dev/inject 'false': ";

/// Nobody can be granted anything beside it: what is missing is less than a granule.
bool HasWhole(uint64_t bytes, uint64_t granule_bytes, uint64_t pool_bytes) {
  return bytes + granule_bytes > pool_bytes;
}

bool SomebodyWantsItAlone(const std::string& root, const std::string& gpu, uint64_t pool_bytes) {
  const Result<GrantStore> store = GrantStore::Open(root);
  if (!store.ok()) return false;
  const Result<GrantStore::Listed> listed = store->List();
  if (!listed.ok()) return false;
  return std::any_of(listed->grants.begin(), listed->grants.end(), [&](const GrantRecord& grant) {
    if (grant.gpu != gpu) return false;
    const Result<GrantTerms> terms = store->TermsOf(grant.id);
    return terms.ok() && !terms->inject && terms->refusal.empty() &&
           HasWhole(grant.bytes, grant.bytes / grant.devices.size(), pool_bytes);
  });
}

}  // namespace

Result<gpu::Pool> Daemon::MakePool(const config::Options& options, gpu::Device* device,
                                   const config::PoolPlan& plan) {
  const bool none =
      !options.grants.empty() &&
      SomebodyWantsItAlone(options.grants, DeviceUuidText(device->info().uuid), plan.bytes);
  return gpu::Pool::Create(device, none ? 1 : plan.handles, options.handle_bytes);
}

/// For ApplyTerms. The pool goes when somebody comes: the pod may not have come to its program yet.
Status Daemon::LeaveAlone(flow::JobId id, JobEntry* job, const GrantTerms& terms) {
  job->spec.name = terms.job;
  if (!terms.pod.empty()) job->pod = terms.pod;
  if (!terms.refusal.empty() || job->left_alone) return {};
  if (job->session != 0 || job->absent.has_value() || job->holder.has_value()) {
    return Status(StatusCode::kFailedPrecondition,
                  std::string(kField) + "allowed before its program uses the GPU");
  }
  if (!HasWhole(job->request_bytes, job->granule_bytes, whole_pool_bytes_)) {
    return Status(StatusCode::kFailedPrecondition,
                  std::string(kField) + "allowed for a container that has all granules of a GPU (" +
                      FormatBytes(whole_pool_bytes_) + ", and this one has " +
                      FormatBytes(job->request_bytes) +
                      "): what it would take was promised to others");
  }
  const JobEntry* other = SomebodyOfTheGroup(id);
  if (other != nullptr) {
    return Status(StatusCode::kFailedPrecondition,
                  std::string(kField) + "'" + other->spec.name +
                      "' still has memory of this GPU; it can begin when that has ended");
  }
  job->left_alone = true;
  return {};
}

/// Of everybody else, while the GPU is somebody's alone.
Status Daemon::MayBeginHere(const JobEntry& job) const {
  if (job.left_alone) {
    return Status(StatusCode::kFailedPrecondition,
                  std::string(kField) +
                      "no memory comes from Sluice here; a program in which the library cannot "
                      "stand aside (it is older, or the daemon was away) is started again");
  }
  const auto alone = std::find_if(jobs_.begin(), jobs_.end(),
                                  [](const auto& entry) { return entry.second.left_alone; });
  if (alone == jobs_.end()) return {};
  return Status(StatusCode::kFailedPrecondition,
                "this GPU is '" + alone->second.spec.name +
                    "''s alone (sluice.dev/inject 'false'); it can begin when that has ended");
}

/// When its last container is gone.
void Daemon::EndLeavingAlone() {
  const bool alone = std::any_of(jobs_.begin(), jobs_.end(), [](const auto& entry) {
    return entry.second.left_alone && !entry.second.grant.empty();
  });
  if (HasNoPool() && !alone) RenewPool("nobody has this GPU to himself any more");
}

/// A library that understands waits for what is not known yet.
void Daemon::Answer(uint32_t id, Client* client, const protocol::Ask& ask) {
  JobEntry& job = jobs_.at(client->job);
  if (job.terms.has_value() && !job.terms->inject && !job.left_alone) {
    // Whoever was in the way may be gone.
    const Status may = LeaveAlone(client->job, &job, *job.terms);
    job.refusal = may.ok() ? job.terms->refusal : may.message();
    ReportTerms(&job, job.refusal);
  }
  const bool unknown = options_.terms == "wait" && !job.grant.empty() && !job.terms.has_value();
  const bool renews = job.left_alone && !HasNoPool();
  if (ask.minor >= protocol::kLeaveAloneMinor && (unknown || renews)) {
    protocol::Notice notice = {};
    notice.header = session::MakeHeader(protocol::FrameType::kNotice, sizeof notice);
    session::CopyText("the daemon finds out what this job may be told", notice.text);
    (void)client->session->connection().SendFrame(notice).ok();
    client->asks = true;
    AwaitTerms(&job, client);
    if (renews) RenewPool("'" + job.spec.name + "' has this GPU to itself");
    return;
  }
  AnswerAsked(id, client);
}

/// One after the other, the questions and sessions of a program do not wait longer than one alone.
void Daemon::AwaitTerms(JobEntry* job, Client* client) {
  constexpr uint64_t kSameNs = 30'000'000'000;
  const uint64_t now = NowNs();
  if (now - job->terms_awaited_ns > kSameNs) job->terms_awaited_ns = now;
  client->waits_for_terms = true;
  client->waits_since_ns = job->terms_awaited_ns;
  if (job->terms.has_value() || !grants_.has_value()) return;
  // Kubelet's list has no containers for a pod's beginning: the plugin finds those by who comes.
  const session::Peer& peer = client->session->peer();
  const auto process = identity::ContainerOfProcess(peer.pid, peer.pidfd.get());
  if (!process.has_value()) return;
  if (Status s = grants_->ReportFirstPod(job->grant, process->pod); !s.ok()) {
    logging::Error("{}", s.message());
  }
}

void Daemon::AnswerAsked(uint32_t id, Client* client) {
  const JobEntry& job = jobs_.at(client->job);
  if (job.left_alone && !HasNoPool()) {
    return RenewPool("'" + job.spec.name + "' has this GPU to itself");
  }
  protocol::Told told =
      FiguresOf(*flow_, client->job, job.limit_bytes, job.session != 0 ? job.pid : 0);
  std::memcpy(told.device_uuid, access_.device_uuid.data(), sizeof told.device_uuid);
  if (job.left_alone) told.flags |= protocol::kLeaveAlone;
  (void)client->session->Tell(told).ok();
  // A monitor asks every second.
  DropClient(id, "it was told about the job's memory", logging::Level::kDebug);
}

}  // namespace sluice::noded
