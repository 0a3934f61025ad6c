// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// Jobs and their sessions, from the registration to the last holder.
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "common/log/log.h"
#include "noderuntime/daemon/daemon.h"

namespace sluice::noded {
namespace {

constexpr size_t kMaxClients = 4096;
/// One has the session, and some processes of the job may ask for one. No job takes the room of
/// others.
constexpr std::ptrdiff_t kMaxClientsPerJob = 64;
/// How long a job's next process waits until the memory of its last one is free.
constexpr uint64_t kPredecessorTimeoutNs = 5'000'000'000;
constexpr uint64_t kTermsTimeoutNs = 10'000'000'000;
/// Of one client, before it is the others' turn: frames are bounded too, and some cost much.
constexpr uint64_t kDecisionsPerWakeup = 8;
/// In a pool of no more pieces each job pays for all that it makes the daemon look at.
constexpr uint64_t kFewPieces = 256;
constexpr uint64_t kLongestWakeupNs = 1'000'000;

}  // namespace

Result<flow::JobId> Daemon::AddJob(const flow::JobSpec& spec,
                                   const session::RegisterFrame& wanted) {
  const flow::JobId id = next_job_++;
  if (Status s = dir_.MakeJobDir(id); !s.ok()) return s;
  Result<UniqueFd> listener = session::ListenAt(dir_.job_socket(id));
  if (!listener.ok()) {
    dir_.RemoveJobDir(id);
    return listener.status();
  }
  JobEntry job;
  job.spec = spec;
  job.spec.id = id;
  job.limit_bytes = wanted.limit_bytes;
  job.request_bytes = wanted.request_bytes;
  job.listener = std::move(*listener);
  const auto token =
      loop_.Add(job.listener.get(), EPOLLIN, [this, id](uint32_t) { OnListener(id); });
  if (!token.ok()) {
    dir_.RemoveJobDir(id);
    return token.status();
  }
  job.listener_token = *token;
  jobs_.emplace(id, std::move(job));
  return id;
}

void Daemon::RemoveJobIfOver(flow::JobId id) {
  const auto found = jobs_.find(id);
  if (found == jobs_.end()) return;
  const JobEntry& job = found->second;
  if (job.launcher != 0 || !job.grant.empty() || job.session != 0 || job.holder.has_value() ||
      job.absent.has_value() || job.orphan_until_ns != 0) {
    return;
  }
  std::vector<uint32_t> orphans;
  for (const auto& [client, state] : clients_) {
    if (state.job == id) orphans.push_back(client);
  }
  std::string last = job.session_number != 0 ? "over" : "ended without having opened a session";
  if (const uint64_t count = job.lines.left_out(); count > 0)
    last += "; " + std::to_string(count) + " more lines of it were left out";
  loop_.Remove(job.listener_token);
  figures_.End(id, job.spec.name, NowNs());
  jobs_.erase(found);
  dir_.RemoveJobDir(id);
  registry_changed_ = true;
  DropKeptJob(id);
  SayOfLaunchers(logging::Level::kInfo, "job " + std::to_string(id) + ": " + last);
  for (const uint32_t client : orphans) CloseClient(client, "the job is over");
}

/// What the job's connections have made this thread do. Where no other job has a session it takes
/// nothing from anybody. To look what there is to decide is to look at all pieces of the pool:
/// where they are many the job pays in proportion to its own, a quarter at least.
void Daemon::Charge(flow::JobId id, uint64_t cpu_ns, bool looked) {
  const auto others = [id](const auto& job) { return job.first != id && job.second.session != 0; };
  if (std::none_of(jobs_.begin(), jobs_.end(), others)) return;
  const scheduler::PoolMap& map = flow_->ledger().map();
  if (const uint64_t all = map.spans().size(); looked && all > kFewPieces) {
    cpu_ns = std::max(cpu_ns / 4, cpu_ns * std::min(all, kFewPieces + map.Pieces(id)) / all);
  }
  if (const auto job = jobs_.find(id); job != jobs_.end()) job->second.share.Spend(cpu_ns, NowNs());
}

void Daemon::OnListener(flow::JobId id) {
  JobEntry& job = jobs_.at(id);
  job.accepts = !job.share.Spent(NowNs());
  loop_.Modify(job.listener_token, job.accepts ? EPOLLIN : 0u);
  if (!job.accepts) return;
  const uint64_t begin = ThreadCpuNs();
  AcceptClient(id);
  Charge(id, ThreadCpuNs() - begin, false);
}

void Daemon::AcceptClient(flow::JobId id) {
  JobEntry& job = jobs_.at(id);
  UniqueFd socket = acceptor_.Accept(job.listener.get());
  if (!socket.valid() || clients_.size() >= kMaxClients) return;
  const auto of_job = std::count_if(clients_.begin(), clients_.end(),
                                    [id](const auto& entry) { return entry.second.job == id; });
  if (of_job >= kMaxClientsPerJob) return;
  Result<session::Peer> peer = session::PeerOf(socket.get());
  if (!peer.ok()) {
    SayOfJob(id, logging::Level::kWarn, peer.status().message());
    return;
  }
  const uint32_t client_id = next_connection_++;
  const int pidfd = peer->pidfd.get();
  Remember(*peer, &job);
  Client client;
  client.job = id;
  client.session = std::make_unique<session::Session>(
      client_id, std::move(socket), std::move(*peer), access_, &job.share, &job.logged, NowNs());
  const auto readable =
      loop_.Add(client.session->fd(), EPOLLIN | EPOLLRDHUP,
                [this, client_id](uint32_t events) { OnClient(client_id, events); });
  if (!readable.ok()) return;
  client.socket_token = *readable;
  const auto ended = loop_.Add(pidfd, EPOLLIN, [this, client_id](uint32_t) {
    DropClient(client_id, "its process ended", logging::Level::kInfo);
  });
  if (ended.ok()) client.pidfd_token = *ended;
  clients_.emplace(client_id, std::move(client));
}

void Daemon::UpdateInterest(Client* client) {
  const bool writes = client->session->connection().wants_write();
  const bool reads = !client->session->paused(NowNs());
  // That it hangs up is told in any case.
  loop_.Modify(client->socket_token,
               EPOLLRDHUP | (reads ? EPOLLIN : 0u) | (writes ? EPOLLOUT : 0u));
  client->reads = reads;
}

void Daemon::OnClient(uint32_t id, uint32_t events) {
  const auto found = clients_.find(id);
  if (found == clients_.end()) return;
  const flow::JobId job = found->second.job;
  const uint64_t begin = ThreadCpuNs();
  const uint64_t looks = flow_->looks();
  ServeClient(id, events);
  Charge(job, ThreadCpuNs() - begin, flow_->looks() > looks);
  if (const auto still = clients_.find(id); still != clients_.end()) UpdateInterest(&still->second);
}

void Daemon::ServeClient(uint32_t id, uint32_t events) {
  session::Session& session = *clients_.at(id).session;
  if ((events & kHangUp) != 0) session.PeerHungUp();
  if ((events & EPOLLOUT) != 0) {
    if (Status s = session.connection().Flush(); !s.ok()) return CloseClient(id, s.message());
  }
  session.StartWakeup();
  // The allowance of frames is counted from the wake-up; what happens is counted from when it was
  // read.
  const uint64_t woken = NowNs();
  const uint64_t enough = flow_->decisions() + kDecisionsPerWakeup;
  // What is not read now is the next turn's, behind what the others have sent meanwhile.
  for (uint64_t read = woken; read - woken < kLongestWakeupNs && flow_->decisions() < enough;) {
    std::optional<session::SessionEvent> event = session.Next(woken);
    if (!event.has_value()) return;
    // False: the client is gone, and `session` with it.
    read = NowNs();
    const uint64_t decisions = flow_->decisions();
    const bool goes_on = HandleEvent(id, std::move(*event), read);
    CountDecisions(decisions, read);
    if (!goes_on) return;
  }
}

bool Daemon::HandleEvent(uint32_t id, session::SessionEvent event, uint64_t now_ns) {
  Client& client = clients_.at(id);
  JobEntry& job = jobs_.at(client.job);
  const flow::JobId job_id = client.job;
  Status status;
  if (std::holds_alternative<session::Opened>(event)) {
    Open(id, &client);
    return clients_.contains(id);
  }
  if (const auto* closed = std::get_if<session::Closed>(&event)) {
    client.parted = closed->parted;
    DropClient(id, closed->reason, closed->by_peer ? logging::Level::kInfo : logging::Level::kWarn);
    return false;
  }
  if (const auto* declared = std::get_if<session::Declaration>(&event)) {
    ResumeSession(id, &client, *declared);
    return clients_.contains(id);
  }
  if (const auto* ask = std::get_if<protocol::Ask>(&event)) {
    Answer(id, &client, *ask);
    return clients_.contains(id);
  }
  if (std::holds_alternative<protocol::Ready>(event)) {
    job.started = true;
    const session::SharedPages& pages = client.session->pages();
    flow_->Start(job.spec, {&pages.mark(), &pages.client(), &pages.daemon()}, now_ns);
    job.holder.reset();  // of an account that goes on
  } else if (const auto* lease = std::get_if<protocol::Lease>(&event)) {
    status = flow_->OnLease(job_id, *lease, now_ns);
    if (!client.session->request_outstanding()) {
      const uint64_t took = NowNs() - now_ns;
      service_.Add(took);
      figures_.Served(took);
    }
  } else if (const auto* gate = std::get_if<protocol::Gate>(&event)) {
    status = flow_->OnGate(job_id, *gate, now_ns);
  } else if (const auto* charge = std::get_if<protocol::Charge>(&event)) {
    status = flow_->OnCharge(job_id, *charge, now_ns);
  } else if (const auto* uncharge = std::get_if<protocol::Uncharge>(&event)) {
    if (!client.session->ready()) return TakeBack(id, *uncharge, now_ns);
    status = flow_->OnUncharge(job_id, *uncharge, now_ns);
  } else if (const auto* count = std::get_if<protocol::Count>(&event)) {
    status = flow_->OnCount(job_id, *count);
  } else if (auto* release = std::get_if<session::ReleaseFrame>(&event)) {
    status = flow_->OnRelease(job_id, std::move(*release), now_ns);
  } else if (const auto* quiet = std::get_if<protocol::Quiet>(&event)) {
    status = flow_->OnQuiet(job_id, *quiet, now_ns);
  } else if (const auto* mismatch = std::get_if<protocol::Mismatch>(&event)) {
    status = flow_->OnMismatch(job_id, *mismatch, now_ns);
  }
  if (status.ok()) return true;
  CloseClient(id, status.message());
  return false;
}

/// What a process gives back of a session that is over. False: the connection is over, too.
bool Daemon::TakeBack(uint32_t id, const protocol::Uncharge& uncharge, uint64_t now_ns) {
  const Client& client = clients_.at(id);
  const flow::JobId job_id = client.job;
  JobEntry& job = jobs_.at(job_id);
  Status status(StatusCode::kInvalidArgument, "Uncharge of another process's session");
  if (client.session->pid() == job.pid) status = flow_->OnUncharge(job_id, uncharge, now_ns);
  if (!status.ok()) {
    CloseClient(id, status.message());
    return false;
  }
  // Nothing is left that anybody could hold.
  if (job.session == 0 && job.holder.has_value() && !flow_->Rests(job_id) &&
      flow_->ledger().Find(job_id) == nullptr) {
    job.holder.reset();
    registry_changed_ = true;
    DropKept(job_id, false);
  }
  DropClient(id, "it gave back what an earlier session was charged for", logging::Level::kDebug);
  return false;
}

void Daemon::Open(uint32_t id, Client* client) {
  JobEntry& job = jobs_.at(client->job);
  if (options_.terms == "wait" && !job.grant.empty() && !job.terms.has_value()) {
    return AwaitTerms(&job, client);
  }
  if (const Status may = MayBeginHere(job); !may.ok()) {
    return RefuseClient(id, may.message(), scheduler::RefusalReason::kRefused);
  }
  if (const Status may = MayUseGrant(&job, client->session->peer()); !may.ok()) {
    return RefuseClient(id, may.message(), scheduler::RefusalReason::kRefused);
  }
  if (const Status may = EnterGroup(client->job, job); !may.ok()) {
    return RefuseClient(id, may.message(), scheduler::RefusalReason::kRefused);
  }
  if (job.session != 0) {
    return RefuseClient(id,
                        "one process of a job at a time: process " + std::to_string(job.pid) +
                            " of this job has the GPU's memory",
                        scheduler::RefusalReason::kSecondProcess);
  }
  if (job.absent.has_value() && flow_->Find(client->job) != nullptr) {
    return RefuseClient(id,
                        "process " + std::to_string(job.pid) +
                            " of this job has the GPU's memory, from before the daemon's restart",
                        scheduler::RefusalReason::kSecondProcess);
  }
  // It had not begun when its daemon died, and starts over.
  if (job.absent.has_value()) {
    loop_.Remove(job.absent->pidfd_token);
    job.absent.reset();
  }
  if (!job.holder.has_value()) return AcceptSession(id, client);
  const bool same = job.holder->pid() == client->session->pid() && !job.holder->ProcessEnded();
  // Its account goes on with this session; watched until that has begun.
  if (same && flow_->Rests(client->job)) return AcceptSession(id, client);
  // A process that has executed another program, or has left a context in a hurry, has a new one by
  // now, and nothing tells whether the driver is done with the old one.
  if (same) {
    return RefuseClient(id,
                        "process " + std::to_string(job.pid) +
                            " left GPU memory behind, in an earlier program or context; that is "
                            "free when the process has ended",
                        scheduler::RefusalReason::kSecondProcess);
  }
  // The job's last process is still going away.
  client->waits_for_predecessor = true;
  client->waits_since_ns = NowNs();
}

/// Only what is a handle of its own can be mapped a second time, by itself.
bool Daemon::Stitches(uint16_t minor) const {
  return minor >= protocol::kStitchMinor && options_.unit_bytes == options_.handle_bytes;
}

void Daemon::AcceptSession(uint32_t id, Client* client) {
  JobEntry& job = jobs_.at(client->job);
  client->waits_for_predecessor = false;
  job.pid = client->session->pid();
  job.session_number = client->session->number();
  job.minor = client->session->client_minor();
  job.spec.stitches = Stitches(job.minor);
  job.started = false;
  job.orphan_until_ns = 0;
  if (Status s = client->session->Prepare(); !s.ok()) {
    SayOfJob(client->job, logging::Level::kError, s.message());
    CloseClient(id, s.message());
    return;
  }
  // The job's session from here on: a keeper that is lost while it is given this session's
  // descriptors is replaced by one that is given everything, and that has to be among it.
  job.session = id;
  // Before the client has them.
  KeepSession(client->job, *client->session);
  registry_changed_ = true;
  SaveState();
  if (Status s = client->session->Accept(job.limit_bytes, job.request_bytes); !s.ok()) {
    SayOfJob(client->job, logging::Level::kError, s.message());
    CloseClient(id, s.message());
    return;
  }
  UpdateInterest(client);
  // Why another process of it was refused before is over.
  Report(job, job.terms_report);
  SayOfJob(client->job, logging::Level::kInfo,
           "session of process " + std::to_string(job.pid) + " ('" + job.spec.name + "')");
}

void Daemon::CloseClient(uint32_t id, const std::string& reason) {
  const auto found = clients_.find(id);
  if (found == clients_.end()) return;
  found->second.session->Close(reason);
  DropClient(id, reason, logging::Level::kWarn);
}

void Daemon::DropClient(uint32_t id, const std::string& reason, logging::Level level) {
  const auto found = clients_.find(id);
  if (found == clients_.end()) return;
  const flow::JobId job_id = found->second.job;
  // Taken out first: nothing below may find the client again.
  Client client = std::move(found->second);
  clients_.erase(found);
  loop_.Remove(client.socket_token);
  loop_.Remove(client.pidfd_token);
  const auto entry = jobs_.find(job_id);
  if (entry == jobs_.end()) return;
  JobEntry& job = entry->second;
  SayOfJob(job_id, level,
           "connection of process " + std::to_string(client.session->pid()) + " closed: " + reason);
  if (job.session == id) {
    job.session = 0;
    const uint64_t now = NowNs();
    // The pages go with the client, after this.
    // An older library does not know what it left.
    const bool parted = client.parted && job.minor >= protocol::kRestMinor;
    if (job.spec.observed && job.started) KeepRecording(job_id, &job, now);
    const bool holds = job.started && flow_->Die(job_id, now, parted);
    registry_changed_ = true;
    // Before anything is dropped: a keeper that is lost then is replaced by one that is given what
    // is here.
    if (holds) {
      session::Peer peer = client.session->TakePeer();
      job.holder.emplace(peer.pid, std::move(peer.pidfd), client.session->TakeLiveness(), now);
      next_tick_ns_ = now;
    }
    job.started = false;
    DropKept(job_id, job.holder.has_value());
  }
  RemoveJobIfOver(job_id);
}

/// Before the flow forgets the job: its launcher asks when the program has ended. A program that
/// did nothing worth recording takes nothing from the one before it (as a script's last command).
void Daemon::KeepRecording(flow::JobId id, JobEntry* job, uint64_t now_ns) {
  Result<std::string> recorded = flow_->RecordingOf(id, now_ns);
  if (recorded.ok() || !job->recording.ok()) job->recording = std::move(recorded);
}

void Daemon::PollHolders(uint64_t now_ns) {
  std::vector<flow::JobId> gone;
  for (auto& [id, job] : jobs_) {
    if (job.holder.has_value() && job.holder->Poll(device_, now_ns)) gone.push_back(id);
  }
  for (const flow::JobId id : gone) {
    JobEntry& job = jobs_.at(id);
    SayOfJob(id, logging::Level::kInfo,
             "the last holder, process " + std::to_string(job.holder->pid()) + ", is gone");
    job.holder.reset();
    flow_->HolderGone(id, now_ns);
    registry_changed_ = true;
    DropKept(id, false);
    for (auto& [client_id, client] : clients_) {
      if (client.job != id || !client.waits_for_predecessor) continue;
      AcceptSession(client_id, &client);
      break;
    }
    RemoveJobIfOver(id);
  }
}

void Daemon::ForgetOrphans(uint64_t now_ns) {
  std::vector<flow::JobId> forgotten;
  for (auto& [id, job] : jobs_) {
    if (job.orphan_until_ns == 0 || now_ns < job.orphan_until_ns) continue;
    job.orphan_until_ns = 0;
    forgotten.push_back(id);
  }
  for (const flow::JobId id : forgotten) RemoveJobIfOver(id);
}

void Daemon::CloseOverdue(uint64_t now_ns) {
  std::vector<uint32_t> asked;
  for (const auto& [id, client] : clients_) {
    if (client.waits_for_predecessor && now_ns - client.waits_since_ns > kPredecessorTimeoutNs) {
      doomed_.emplace_back(id, "the memory of this job's last process is still in use");
    } else if (client.waits_for_terms && now_ns - client.waits_since_ns > kTermsTimeoutNs) {
      if (client.asks) {
        asked.push_back(id);
        continue;
      }
      const std::string text =
          "this pod's terms (its annotations) are not known on the node after 10 s: "
          "sluice-device-plugin did not find it, and its log says why";
      Report(jobs_.at(client.job), text);
      doomed_.emplace_back(id, text);
    } else if (const auto reason = client.session->Overdue(now_ns)) {
      doomed_.emplace_back(id, *reason);
    }
  }
  for (const uint32_t id : asked) AnswerAsked(id, &clients_.at(id));
}

}  // namespace sluice::noded
