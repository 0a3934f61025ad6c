// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// What is counted of the jobs and shown to who asks: nothing here decides anything.
#include <time.h>

#include <algorithm>
#include <utility>

#include "common/log/log.h"
#include "noderuntime/daemon/daemon.h"
#include "noderuntime/daemon/live_json.h"
#include "noderuntime/daemon/text_file.h"

namespace sluice::noded {
namespace {

/// From this daemon's clock to the time since 1970, as it is now: people set clocks.
int64_t UnixOffsetNs() {
  timespec now = {};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec - static_cast<int64_t>(NowNs());
}

}  // namespace

/// Whether the program that the launcher became is on the GPU although it never asked for a
/// session: the library is not in it, or not in front of its driver.
bool Daemon::UsesGpuUnseen(const JobEntry& job) const {
  const auto launcher = controls_.find(job.launcher);
  if (job.session_number != 0 || launcher == controls_.end()) return false;
  const Result<session::Peer> peer = session::PeerOf(launcher->second.connection.fd());
  const bool known = peer.ok() && std::any_of(job.processes.begin(), job.processes.end(),
                                              [&](const KnownProcess& process) {
                                                return process.pid == peer->pid;
                                              });
  return peer.ok() && !known && device_->IsUsedBy(peer->pid);
}

std::map<flow::JobId, JobFacts> Daemon::Facts() {
  std::map<flow::JobId, JobFacts> facts;
  for (auto& [id, job] : jobs_) {
    ForgetEnded(&job);
    std::vector<pid_t> processes;
    for (const KnownProcess& process : job.processes) processes.push_back(process.pid);
    facts[id] = {job.spec.name,     job.pid,           job.session != 0,
                 job.limit_bytes,   job.request_bytes, std::move(processes),
                 UsesGpuUnseen(job)};
  }
  return facts;
}

NodeFacts Daemon::NodeFactsNow() const {
  NodeFacts node;
  node.gpu = options_.gpu;
  node.handle_bytes = options_.handle_bytes;
  node.draining = draining_;
  node.bypassed = bypassed_;
  node.made_bytes = pool_.bytes();
  node.context_bytes = has_moved_ ? options_.context_bytes : 0;
  node.used_bytes = used_bytes_;
  for (const auto& [id, job] : jobs_) {
    if (job.session == 0) continue;
    ++node.sessions[std::to_string(protocol::kMajor) + "." + std::to_string(job.minor)];
  }
  if (!options_.keeper.empty()) {
    node.keeper = {keeper_.has_value(), keeper_.has_value() ? keeper_->pid() : 0,
                   keeper_losses_.count(), keeper_losses_.MissingFor(NowNs())};
  }
  node.adopted = adopted_;
  node.unix_offset_ns = UnixOffsetNs();
  node.started_ns = started_ns_;
  return node;
}

Status Daemon::SendStatus(ControlClient* client, const protocol::Status& wanted) {
  const uint64_t now = NowNs();
  figures_.Prune(now);
  const std::string text =
      StatusJson(*flow_, Facts(), device_->info(), NodeFactsNow(), host_tier_, figures_, service_,
                 tuner_.get(), now, (wanted.header.flags & protocol::kWithoutEvents) == 0);
  const Result<UniqueFd> file = TextFile(text);
  if (!file.ok()) return file.status().Annotate("status");
  protocol::StatusReply reply = {};
  reply.header = session::MakeHeader(protocol::FrameType::kStatusReply, sizeof reply);
  reply.json_bytes = text.size();
  const int fds[] = {file->get()};
  return client->connection.SendNow(std::as_bytes(std::span(&reply, 1)), fds);
}

Status Daemon::SendLive(ControlClient* client, const protocol::Live& wanted) {
  std::map<flow::JobId, JobFacts> facts;
  for (const auto& [id, job] : jobs_) {
    facts[id] = {job.spec.name, job.pid, job.session != 0, job.limit_bytes, job.request_bytes, {},
                 false};
  }
  const std::string text =
      LiveJson(*flow_, facts, figures_, &history_, UnixOffsetNs(), wanted.since, NowNs());
  const Result<UniqueFd> file = TextFile(text);
  if (!file.ok()) return file.status().Annotate("live view");
  protocol::LiveReply reply = {};
  reply.header = session::MakeHeader(protocol::FrameType::kLiveReply, sizeof reply);
  reply.json_bytes = text.size();
  const int fds[] = {file->get()};
  return client->connection.SendNow(std::as_bytes(std::span(&reply, 1)), fds);
}

/// In the figures and in the log, so that each can be told from the other.
void Daemon::Count(const scheduler::Record& record) {
  figures_.Apply(record);
  if (event_log_.has_value()) event_log_->Write(record);
}

/// An event on the job's pod, by the device plugin. A job to which something happens all the time
/// would fill the cluster's store with them; the figures have them all. What happens often takes
/// nothing from what happens once.
void Daemon::TellPod(flow::JobId id, const std::string& word, const std::string& text) {
  constexpr uint64_t kEveryNs = 10'000'000'000;
  const auto found = jobs_.find(id);
  if (!grants_.has_value() || found == jobs_.end() || found->second.grant.empty()) return;
  JobEntry& job = found->second;
  const uint64_t now = NowNs();
  const auto [last, is_first] = job.pod_told_ns.try_emplace(word, now);
  if (!is_first && now - last->second < kEveryNs) return;
  last->second = now;
  if (Status s = grants_->ReportHappening(job.grant, {word, text}); !s.ok()) {
    logging::Error("{}", s.message());
  }
}

/// A process of the job that cannot have what it came for. Why its grant cannot be used, the pod is
/// told as that (SluiceRefused).
void Daemon::RefuseClient(uint32_t id, const std::string& reason, scheduler::RefusalReason code) {
  scheduler::Record record;
  record.t_ns = NowNs();
  record.event = scheduler::EventKind::kDeny;
  record.job = clients_.at(id).job;
  record.reason = ReasonName(code);
  record.text = reason;
  Count(record);
  if (code == scheduler::RefusalReason::kRefused) {
    Report(jobs_.at(record.job), reason);
  } else {
    TellPod(record.job, "refused", reason);
  }
  CloseClient(id, reason);
}

void Daemon::CountDecisions(uint64_t before, uint64_t since_ns) {
  if (const uint64_t made = flow_->decisions() - before; made > 0) {
    figures_.Decided(made, NowNs() - since_ns);
  }
}

void Daemon::NoteHoldings(uint64_t now_ns) {
  if (flow_->changes() == noted_changes_) return;
  noted_changes_ = flow_->changes();
  std::vector<figures::Holding> holdings;
  for (const scheduler::Job& job : flow_->ledger().jobs()) {
    if (job.held() == 0 || job.id == scheduler::kBeyondBudget) continue;
    holdings.push_back({job.id, job.held()});
  }
  history_.Note(now_ns, holdings);
}

}  // namespace sluice::noded
