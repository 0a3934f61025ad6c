// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/log/log.h"
#include "common/status.h"
#include "noderuntime/bypass/bypass.h"
#include "noderuntime/bypass/process_watch.h"
#include "noderuntime/config/options.h"
#include "noderuntime/daemon/event_loop.h"
#include "noderuntime/daemon/holder_watch.h"
#include "noderuntime/daemon/keeper_losses.h"
#include "noderuntime/daemon/line_budget.h"
#include "noderuntime/daemon/runtime_dir.h"
#include "noderuntime/daemon/status_json.h"
#include "noderuntime/daemon/takeover.h"
#include "noderuntime/eventlog/event_log.h"
#include "noderuntime/figures/figures.h"
#include "noderuntime/figures/held_history.h"
#include "noderuntime/flow/flow.h"
#include "noderuntime/gpu/device.h"
#include "noderuntime/gpu/pool.h"
#include "noderuntime/grants/grant_watch.h"
#include "noderuntime/hosttier/host_tier.h"
#include "noderuntime/oracle/oracle_writer.h"
#include "noderuntime/session/session.h"
#include "noderuntime/tuner/search_thread.h"
#include "noderuntime/tuner/tuner.h"

namespace sluice::noded {

/// One connection on a job's socket.
struct Client {
  std::unique_ptr<session::Session> session;
  flow::JobId job = 0;
  EventLoop::Token socket_token = 0;
  EventLoop::Token pidfd_token = 0;
  bool reads = true;  // whether the loop is told of what it sends
  /// Its Hello is good, but the job's memory is still in the hands of its last process.
  bool waits_for_predecessor = false;
  /// Its Hello is good, but the terms of the job's grant are not known yet.
  bool waits_for_terms = false;
  bool asks = false;    // and it only wants to know what the job may be told
  bool parted = false;  // it said goodbye
  uint64_t waits_since_ns = 0;
};

/// The session of a client that has not come back to this daemon from the one before it.
struct AbsentSession {
  AbsentSession(session::SharedPages shared, UniqueFd process, UniqueFd pipe)
      : pages(std::move(shared)), pidfd(std::move(process)), liveness(std::move(pipe)) {}
  session::SharedPages pages;
  UniqueFd pidfd;
  UniqueFd liveness;
  EventLoop::Token pidfd_token = 0;
};

/// A process, held so that its number stays its own.
struct KnownProcess {
  pid_t pid = 0;
  UniqueFd pidfd;
};

/// A registered job. It lives as long as its launcher's connection or its grant, a session, or a
/// last holder.
struct JobEntry {
  flow::JobSpec spec;
  uint64_t limit_bytes = 0;  // as given; 0: not given
  uint64_t request_bytes = 0;
  UniqueFd listener;
  EventLoop::Token listener_token = 0;
  uint32_t launcher = 0;  // control connection; 0: hung up
  uint32_t session = 0;   // client whose Hello was accepted; 0: none
  bool started = false;   // that client is known to the flow
  pid_t pid = 0;          // of the latest session
  uint32_t session_number = 0;
  uint16_t minor = 0;  // of its library's protocol
  std::optional<HolderWatch> holder;
  std::optional<AbsentSession> absent;
  uint64_t orphan_until_ns = 0;  // it may have a launcher that nobody can see
  /// That came to its socket, whatever for: they have the library.
  std::vector<KnownProcess> processes;
  std::string grant;    // of a container, as long as that is there; empty: a launcher's
  std::string pod;      // that the grant is, by its UID; empty: nobody of a pod came yet
  std::string refusal;  // why nobody can use the grant; empty: anybody can
  std::optional<GrantTerms> terms;  // of the grant, since they are known
  std::string terms_report;         // what is refused of them, for its pod; empty: nothing
  uint64_t granule_bytes = 0;       // of the grant: what one of its ids is worth
  uint64_t terms_awaited_ns = 0;    // since when its programs wait for them; 0: nobody did
  bool left_alone = false;          // the GPU is this job's, without a pool (daemon_alone.cc)
  /// Of its latest session that is over, if it was observed.
  Result<std::string> recording =
      Status(StatusCode::kFailedPrecondition, "the job has not used the GPU under Sluice");
  LineBudget lines{40, 1, NowNs()};
  std::map<std::string, uint64_t> pod_told_ns;  // when its pod was last told, by word
  /// What its connections may cost, one after the other or side by side.
  session::Share share{NowNs()};
  bool accepts = true;  // whether the loop is told of who connects
  /// What they may send that is logged.
  session::TokenBucket logged{session::Session::kLoggedBurst, session::Session::kLoggedPerSecond,
                              NowNs()};
};

/// One connection on the daemon's own socket.
struct ControlClient {
  session::Connection connection;
  EventLoop::Token token = 0;
  flow::JobId job = 0;  // registered through it; 0: none yet
  session::Share share{NowNs()};
  bool reads = true;  // whether the loop is told of what it sends
};

/// The daemon: wires sockets, flow, event log, oracle and GPU together in one thread.
class Daemon : private flow::FlowSink {
 public:
  /// Everything is in place and listens afterwards. `device` outlives the daemon.
  static Result<std::unique_ptr<Daemon>> Create(const config::Options& options, gpu::Device* device,
                                                const flow::FaultPlan& faults);
  ~Daemon() override;

  /// Until SIGTERM or SIGINT (both blocked by the caller), Stop, or the idle time is over.
  Status Run();
  /// One turn of the loop, for tests. False: the daemon wants to end.
  Result<bool> RunOnce(int64_t longest_wait_ns);

  const flow::Flow& flow() const { return *flow_; }

 private:
  Daemon(const config::Options& options, gpu::Device* device, RuntimeDir dir, EventLoop loop,
         gpu::Pool pool, uint64_t whole_pool_bytes, uint64_t host_memory_bytes);
  Status Init(const flow::FaultPlan& faults, std::optional<Takeover> found);
  Status OpenLogs(bool takes_over);
  Status Listen();

  // daemon.cc
  int64_t NextTimeout(uint64_t now_ns);
  bool SomebodyIsReadLater() const;
  void Tick(uint64_t now_ns);
  void Poison(const flow::Extents& extents);
  void Shutdown();

  // flow::FlowSink (daemon_sink.cc)
  void Grant(flow::JobId job, const flow::GrantAnswer& answer) override;
  void Charged(flow::JobId job, uint32_t seq, uint64_t outside_bytes) override;
  void Deny(flow::JobId job, uint32_t seq, protocol::DenyCode code,
            const std::string& text) override;
  void Notice(flow::JobId job, uint32_t seq, const flow::Line& line) override;
  void Quiesce(flow::JobId job, uint32_t seq) override;
  void Log(const scheduler::Record& record) override;
  void Say(const std::string& text) override;
  bool wants_log() const override { return event_log_.has_value(); }
  void HolderChanged(const flow::Extents& extents, flow::JobId holder) override;
  // daemon_moves.cc: the same, for what goes to host memory and back
  bool CanMove(flow::JobId job, flow::Units units) override;
  Status MoveOut(flow::JobId job, const flow::Extents& extents) override;
  Status MoveBack(flow::JobId job) override;
  flow::Extents Copied(flow::JobId job) override { return host_tier_.Copied(job); }
  void DropMoved(flow::JobId job) override;
  void EndSession(flow::JobId job, const std::string& reason) override;
  void PollMoves(uint64_t now_ns);
  template <typename Frame>
  bool SendTo(flow::JobId job, const Frame& frame);
  Client* SessionOf(flow::JobId job);

  // daemon_lines.cc: lines of the log that a client can cause as often as it likes. Each job has a
  // budget for them, and so have all launchers together.
  void SayOfJob(flow::JobId job, logging::Level level, const std::string& text);
  void SayOfLaunchers(logging::Level level, const std::string& text);
  void SayLeftOut(uint64_t now_ns);

  // daemon_control.cc: launchers and the command line
  bool UsesGpuUnseen(const JobEntry& job) const;
  void AcceptControl();
  void OnControl(uint32_t id, uint32_t events);
  void ServeControl(uint32_t id, uint32_t events);
  Status HandleControl(uint32_t id, const session::Frame& frame);
  void UpdateInterest(ControlClient* client);
  void CloseControl(uint32_t id);
  Status Register(uint32_t control, const session::RegisterFrame& wanted);
  Result<flow::JobSpec> CheckAmounts(const session::RegisterFrame& wanted) const;
  Result<flow::JobSpec> CheckTerms(const session::RegisterFrame& wanted) const;
  Result<uint32_t> AddControl(UniqueFd socket, flow::JobId job);
  Status AnswerRegistration(uint32_t control, flow::JobId job, uint32_t seq);
  Status SendRecording(ControlClient* client);

  // daemon_figures.cc: what is counted and shown
  Status SendStatus(ControlClient* client, const protocol::Status& wanted);
  Status SendLive(ControlClient* client, const protocol::Live& wanted);
  std::map<flow::JobId, JobFacts> Facts();
  NodeFacts NodeFactsNow() const;
  void Count(const scheduler::Record& record);
  void TellPod(flow::JobId job, const std::string& word, const std::string& text);
  void RefuseClient(uint32_t id, const std::string& reason, scheduler::RefusalReason code);
  void CountDecisions(uint64_t before, uint64_t since_ns);
  void NoteHoldings(uint64_t now_ns);

  // daemon_policy.cc: which policy, and `auto`
  Status SetPolicy(ControlClient* client, const session::SetPolicyFrame& wanted);
  Status SetBudget(ControlClient* client, const protocol::SetBudget& wanted);
  static scheduler::Config PolicyToBeginWith(const config::Options& options);
  void KeepPolicy(const KeptState& state);
  void StartOrStopTuner();
  void LookForBetter(uint64_t now_ns);

  // daemon_jobs.cc: jobs and their sessions
  Result<flow::JobId> AddJob(const flow::JobSpec& spec, const session::RegisterFrame& wanted);
  void RemoveJobIfOver(flow::JobId job);
  void OnListener(flow::JobId job);
  void AcceptClient(flow::JobId job);
  void OnClient(uint32_t id, uint32_t events);
  void ServeClient(uint32_t id, uint32_t events);
  void Charge(flow::JobId job, uint64_t cpu_ns, bool looked);
  bool HandleEvent(uint32_t id, session::SessionEvent event, uint64_t now_ns);
  bool TakeBack(uint32_t id, const protocol::Uncharge& uncharge, uint64_t now_ns);
  void Open(uint32_t id, Client* client);
  bool Stitches(uint16_t minor) const;
  void AcceptSession(uint32_t id, Client* client);
  void CloseClient(uint32_t id, const std::string& reason);
  void DropClient(uint32_t id, const std::string& reason, logging::Level level);
  void KeepRecording(flow::JobId id, JobEntry* job, uint64_t now_ns);
  void PollHolders(uint64_t now_ns);
  void CloseOverdue(uint64_t now_ns);
  void ForgetOrphans(uint64_t now_ns);
  void UpdateInterest(Client* client);

  // daemon_grants.cc: jobs of containers
  Status WatchGrants();
  void ReadGrants();
  void TakeGrants(const grants::GrantWatch::Changes& changes);
  Status AddGrant(const GrantRecord& grant);
  Status ListenForGrant(flow::JobId id, const std::string& grant);
  void EndGrant(const std::string& grant);
  void TakeTerms(const std::string& grant, const GrantTerms& terms);
  Status ApplyTerms(flow::JobId id, JobEntry* job, const GrantTerms& terms);
  void Report(const JobEntry& job, const std::string& text);
  void ReportTerms(JobEntry* job, const std::string& text);
  void AnswerTerms(const JobEntry& job);
  Status MayUseGrant(JobEntry* job, const session::Peer& peer);
  Status EnterGroup(flow::JobId id, const JobEntry& job);
  const JobEntry* SomebodyOfTheGroup(flow::JobId but) const;
  void RenewPool(const std::string& why);
  void RenewPoolOfGroup();
  std::map<flow::JobId, JobEntry>::iterator FindGrant(const std::string& grant);

  // daemon_alone.cc: a container that has a whole GPU to itself, without Sluice
  static Result<gpu::Pool> MakePool(const config::Options& options, gpu::Device* device,
                                    const config::PoolPlan& plan);
  bool HasNoPool() const { return pool_.bytes() < whole_pool_bytes_ && pool_.handles() == 1; }
  Status LeaveAlone(flow::JobId id, JobEntry* job, const GrantTerms& terms);
  Status MayBeginHere(const JobEntry& job) const;
  void EndLeavingAlone();
  void Answer(uint32_t id, Client* client, const protocol::Ask& ask);
  void AnswerAsked(uint32_t id, Client* client);
  void AwaitTerms(JobEntry* job, Client* client);

  // daemon_bypass.cc: who uses the GPU past this daemon
  Status WatchProcesses();
  void LookAtProcesses();
  std::set<pid_t> KnownPids();
  void FoundBypassing(pid_t pid);
  static void Remember(const session::Peer& peer, JobEntry* job);
  static void ForgetEnded(JobEntry* job);

  /// What an operator is told to be so holds for the daemon after this one, too: kept, then said.
  template <typename Frame>
  Status AnswerOrder(ControlClient* client, const Frame& answer) {
    SaveState();
    return client->connection.SendFrame(answer);
  }

  // daemon_drain.cc: no new jobs
  Status Drain(ControlClient* client, const protocol::Drain& wanted);
  Status TakesNewJobs() const;

  // daemon_limits.cc: the limit of a job that is there
  Status SetLimit(ControlClient* client, const protocol::SetLimit& wanted);
  Status OrderLimit(flow::JobId id, JobEntry* job, uint64_t bytes);
  Status ApplyLimit(flow::JobId id, JobEntry* job, uint64_t limit_bytes, int32_t priority);

  // daemon_keeper.cc: what outlives this daemon
  Status StartKeeper();
  Status TakeKeeper(Result<keeper::KeeperClient> started);
  Status WatchKeeper();
  void MissKeeper(const Status& why);
  void LoseKeeper(const Status& why);
  bool NeedsKeeper() const;
  void ReplaceKeeper(uint64_t now_ns);
  Status StoreEverything();
  Status StoreSession(flow::JobId job, const session::SharedPages& pages, int liveness, int pidfd);
  void Keep(keeper::Kind kind, flow::JobId job, int fd);
  void KeepSession(flow::JobId job, const session::Session& session);
  void DropKept(flow::JobId job, bool holder_stays);
  void DropKeptJob(flow::JobId job);
  void WriteRegistry();
  void SaveState();

  // daemon_takeover.cc: following a daemon that died
  Status TakeOver(Takeover found, const flow::FlowOptions& options, flow::FlowSink* sink);
  Status TakeJob(const KeptJob& kept, KeptFds* fds, uint64_t now_ns);
  void TakeSession(flow::JobId id, JobEntry* job, KeptFds* fds, uint64_t now_ns);
  void WatchAbsent(flow::JobId id, JobEntry* job);
  void PublishHolders();
  void ResumeSession(uint32_t id, Client* client, const session::Declaration& declared);
  void DropAbsent(flow::JobId id, const std::string& reason);
  bool StillRecovering(uint64_t now_ns);
  void Recover(uint64_t now_ns);

  config::Options options_;
  gpu::Device* device_;
  RuntimeDir dir_;
  EventLoop loop_;
  gpu::Pool pool_;
  uint64_t whole_pool_bytes_;  // what it is unless somebody has the GPU to himself
  hosttier::HostTier host_tier_;
  bool has_moved_ = false;  // it has a context of its own since then
  session::PoolAccess access_;
  figures::Figures figures_;
  figures::HeldHistory history_;
  uint64_t noted_changes_ = 0;
  std::optional<uint64_t> used_bytes_;  // of the GPU, as NVML said last
  const uint64_t started_ns_ = NowNs();
  std::optional<eventlog::EventLog> event_log_;
  std::optional<oracle::OracleWriter> oracle_;
  std::unique_ptr<flow::Flow> flow_;
  std::unique_ptr<tuner::SearchThread> searcher_;
  std::unique_ptr<tuner::Tuner> tuner_;  // under `auto`
  bool policy_was_set_ = false;          // on the running node: it outlives this daemon

  session::Acceptor acceptor_;
  UniqueFd control_listener_;
  UniqueFd signals_;
  std::map<uint32_t, ControlClient> controls_;
  std::map<uint32_t, Client> clients_;
  std::map<flow::JobId, JobEntry> jobs_;
  std::optional<grants::GrantWatch> grants_;
  std::unique_ptr<bypass::ProcessWatch> processes_;
  EventLoop::Token processes_token_ = 0;
  bypass::Bypass bypass_;
  std::optional<BypassCounts> bypassed_;  // none: nobody looks
  /// Whose the pool's memory has been, of jobs with terms; none: nobody's yet.
  std::optional<std::string> pool_group_;
  bool draining_ = false;
  bool renews_pool_ = false;  // this daemon ends, and its pool with it
  uint32_t next_connection_ = 1;
  flow::JobId next_job_ = 1;
  LineBudget launcher_lines_{200, 10, NowNs()};
  /// Clients to be closed when no flow call is on the stack: a send to them failed.
  std::vector<std::pair<uint32_t, std::string>> doomed_;

  std::optional<keeper::KeeperClient> keeper_;
  /// One that was given up and may live: should this daemon die now, it is better than none. Told
  /// to end when another one has everything.
  std::optional<keeper::KeeperClient> last_keeper_;
  UniqueFd keeper_launched_;           // readable when the one that begins can be connected to
  uint64_t keeper_late_ns_ = 0;        // then it is given up
  EventLoop::Token keeper_token_ = 0;  // of the one or the other
  KeeperLosses keeper_losses_;
  bool keeper_missed_ = false;  // and that was said
  std::optional<keeper::Notebook> notebook_;
  ByteWriter state_bytes_;
  ByteWriter flow_bytes_;
  ByteWriter registry_bytes_;
  bool registry_changed_ = true;  // since registry_bytes_ was written
  bool too_large_ = false;
  uint64_t saved_changes_ = 0;

  bool recovering_ = false;
  uint64_t recover_until_ns_ = 0;
  pid_t predecessor_ = 0;  // died with a context of its own; 0: gone

  bool stopping_ = false;
  uint64_t stop_by_ns_ = 0;   // whoever is still in host memory
  bool adopted_ = false;      // a predecessor's keeper, pool and jobs
  bool initialised_ = false;  // and all of that was taken over
  bool poison_failed_ = false;
  uint64_t next_tick_ns_ = 0;
  uint64_t next_beat_ns_ = 0;
  uint64_t fences_since_ns_ = 0;  // since somebody waits for a fence; 0: nobody
  uint64_t idle_since_ns_ = 0;
  ServiceTimes service_;
};

}  // namespace sluice::noded
