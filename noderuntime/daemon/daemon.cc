// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/daemon/daemon.h"

#include <signal.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <utility>

#include "common/bytes.h"
#include "common/log/log.h"
#include "common/nvml.h"
#include "noderuntime/daemon/predecessor.h"

namespace sluice::noded {
namespace {

constexpr uint64_t kTickNs = 5'000'000;
/// Somebody waits for a fence: a GPU finishes a kernel within tens of microseconds, so a short
/// while of close looks comes first.
constexpr uint64_t kCloseLooksNs = 2'000'000;
constexpr int64_t kCloseLookNs = 30'000;
constexpr int64_t kFenceLookNs = 200'000;
/// Nobody waits for it yet; held longer than needed it still is.
constexpr int64_t kLazyFenceLookNs = 1'000'000;

/// While there is something to say that had no room.
constexpr int64_t kSayLeftOutNs = 1'000'000'000;

/// A copy to host memory takes tens of milliseconds, and somebody waits for its end.
constexpr int64_t kCopyLookNs = 100'000;
/// A daemon that is to end waits so long for its neighbours to let a job in host memory come back.
constexpr uint64_t kStopPatienceNs = 10'000'000'000;

uint64_t Nanoseconds(double seconds) { return static_cast<uint64_t>(seconds * 1e9); }

/// One descriptor per handle and more per session.
void RaiseFileLimit() {
  rlimit limit = {};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

/// What this machine has, in bytes.
uint64_t MachineMemory() {
  return static_cast<uint64_t>(std::max(::sysconf(_SC_PHYS_PAGES), 0L)) *
         static_cast<uint64_t>(std::max(::sysconf(_SC_PAGESIZE), 0L));
}

}  // namespace

Daemon::Daemon(const config::Options& options, gpu::Device* device, RuntimeDir dir, EventLoop loop,
               gpu::Pool pool, uint64_t whole_pool_bytes, uint64_t host_memory_bytes)
    : options_(options),
      device_(device),
      dir_(std::move(dir)),
      loop_(std::move(loop)),
      pool_(std::move(pool)),
      whole_pool_bytes_(whole_pool_bytes),
      host_tier_(device, options_.unit_bytes, host_memory_bytes),
      figures_(static_cast<scheduler::Units>(pool_.bytes() / options_.unit_bytes)) {
  access_.unit_bytes = options_.unit_bytes;
  access_.handle_bytes = options_.handle_bytes;
  access_.handles = pool_.fds();
  access_.device_uuid = device->info().uuid;
}

Daemon::~Daemon() { Shutdown(); }

Result<std::unique_ptr<Daemon>> Daemon::Create(const config::Options& options, gpu::Device* device,
                                               const flow::FaultPlan& faults) {
  RaiseFileLimit();
  // The lock first: a second daemon must not take memory before it finds out that it is one too
  // many.
  Result<RuntimeDir> dir = RuntimeDir::Open(options.runtime_dir);
  if (!dir.ok()) return dir.status();
  config::Options actual = options;
  config::SizeUnits(device->info().total_bytes, &actual);
  Result<std::optional<Predecessor>> predecessor = FindPredecessor(&actual, device->info());
  if (!predecessor.ok()) return predecessor.status();
  std::optional<keeper::KeeperClient> keeper;
  std::optional<Takeover> found;
  if (predecessor->has_value()) {
    keeper.emplace(std::move((*predecessor)->keeper));
    found.emplace(std::move((*predecessor)->found));
  }
  const Result<config::PoolPlan> plan =
      config::PlanPool(actual, device->info().total_bytes, device->info().granularity);
  if (!plan.ok() && !found.has_value()) return plan.status();
  Result<gpu::Pool> pool =
      found.has_value() ? gpu::Pool::Adopt(device, std::move(found->pool), actual.handle_bytes)
                        : MakePool(actual, device, *plan);
  if (!pool.ok()) return pool.status();
  const uint64_t whole = plan.ok() ? plan->bytes : pool->bytes();
  const Result<uint64_t> host_memory =
      config::PlanHostMemory(actual, pool->bytes(), MachineMemory());
  if (!host_memory.ok()) return host_memory.status();
  Result<EventLoop> loop = EventLoop::Create();
  if (!loop.ok()) return loop.status();
  std::unique_ptr<Daemon> daemon(new Daemon(actual, device, std::move(*dir), std::move(*loop),
                                            std::move(*pool), whole, *host_memory));
  daemon->keeper_ = std::move(keeper);
  daemon->adopted_ = found.has_value();
  if (Status s = daemon->Init(faults, std::move(found)); !s.ok()) return s;
  return daemon;
}

Status Daemon::OpenLogs(bool takes_over) {
  if (!options_.event_log.empty()) {
    Result<eventlog::EventLog> log = eventlog::EventLog::Create(options_.event_log);
    if (!log.ok()) return log.status();
    event_log_.emplace(std::move(*log));
    access_.logs_requests = true;
  }
  if (options_.oracle.empty()) return {};
  const oracle::OracleLayout layout = {options_.unit_bytes, options_.handle_bytes, access_.handles};
  Result<oracle::OracleWriter> oracle = takes_over
                                            ? oracle::OracleWriter::Reopen(options_.oracle, layout)
                                            : oracle::OracleWriter::Create(options_.oracle, layout);
  if (!oracle.ok()) return oracle.status();
  oracle_.emplace(std::move(*oracle));
  return {};
}

Status Daemon::Init(const flow::FaultPlan& faults, std::optional<Takeover> found) {
  const bool takes_over = found.has_value();
  if (Status s = OpenLogs(takes_over); !s.ok()) return s;
  flow::FlowOptions flow;
  flow.pool_units = static_cast<uint32_t>(pool_.bytes() / options_.unit_bytes);
  flow.unit_bytes = options_.unit_bytes;
  flow.outside_bytes = device_->info().total_bytes - pool_.bytes();
  flow.context_bytes = options_.context_bytes;
  if (takes_over) KeepPolicy(found->state);
  flow.policy = PolicyToBeginWith(options_);
  flow.claims = *scheduler::FindClaims(options_.claims);
  flow.lend_eagerly = options_.lend == "eager";
  flow.credit = options_.credit == "on";
  flow.credit_ns = uint64_t{1000} * options_.credit_us.value_or(0);
  flow.lease_wait_ns = Nanoseconds(options_.lease_wait_s);
  flow.patience.silent_ns = Nanoseconds(options_.patience_s);
  flow.patience.arrival_ns = std::min(flow.patience.arrival_ns, flow.patience.silent_ns);
  flow.patience.quiet_ns = std::min(flow.patience.quiet_ns, flow.patience.silent_ns);
  flow.faults = faults;
  flow::FlowSink* sink = this;
  std::set<uint32_t> kept_jobs;
  if (takes_over) {
    if (Status s = WatchKeeper(); !s.ok()) return s;
    for (const KeptJob& job : found->state.jobs) kept_jobs.insert(job.id);
    if (Status s = TakeOver(std::move(*found), flow, sink); !s.ok()) return s;
  } else {
    flow_ = std::make_unique<flow::Flow>(flow, sink);
    // Without one, which is said, it serves all the same.
    if (!options_.keeper.empty()) (void)StartKeeper().ok();
  }
  StartOrStopTuner();
  if (Status s = dir_.Begin(kept_jobs); !s.ok()) return s;
  if (options_.poison && !takes_over) {
    if (Status s = device_->Poison(0, pool_.bytes()); !s.ok()) return s;
  }
  if (Status s = WatchGrants(); !s.ok()) return s;
  if (Status s = WatchProcesses(); !s.ok()) return s;
  return Listen();
}

Status Daemon::Listen() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  signals_.reset(::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals_.valid()) return Status::FromErrno(errno, "signalfd");
  Result<EventLoop::Token> added = loop_.Add(signals_.get(), EPOLLIN, [this](uint32_t) {
    signalfd_siginfo info;
    if (::read(signals_.get(), &info, sizeof info) == sizeof info) {
      logging::Info("stopping (signal {})", info.ssi_signo);
      stopping_ = true;
    }
  });
  if (!added.ok()) return added.status();

  // Default slack (50 us) would double the time between two close looks at a fence.
  ::prctl(PR_SET_TIMERSLACK, 1000, 0, 0, 0);
  idle_since_ns_ = NowNs();
  Result<UniqueFd> listener = session::ListenAt(dir_.control_socket());
  if (!listener.ok()) return listener.status();
  control_listener_ = std::move(*listener);
  added = loop_.Add(control_listener_.get(), EPOLLIN, [this](uint32_t) { AcceptControl(); });
  if (!added.ok()) return added.status();
  logging::Info("GPU {} '{}' ({}): pool {} in {} handles, lease unit {}, policy {}", options_.gpu,
                device_->info().name, DeviceUuidText(device_->info().uuid),
                FormatBytes(pool_.bytes()), access_.handles.size(),
                FormatBytes(options_.unit_bytes), options_.policy);
  initialised_ = true;
  return {};
}

Status Daemon::Run() {
  for (;;) {
    const Result<bool> goes_on = RunOnce(-1);
    if (!goes_on.ok()) return goes_on.status();
    if (!*goes_on) return {};
  }
}

Result<bool> Daemon::RunOnce(int64_t longest_wait_ns) {
  int64_t timeout = NextTimeout(NowNs());
  if (longest_wait_ns >= 0)
    timeout = timeout < 0 ? longest_wait_ns : std::min(timeout, longest_wait_ns);
  const Result<int> events = loop_.RunOnce(timeout);
  if (!events.ok()) return events.status();
  const uint64_t now = NowNs();
  const uint64_t decisions = flow_->decisions();
  flow_->PollFences(now);
  CountDecisions(decisions, now);
  PollMoves(now);
  if (now >= next_tick_ns_) Tick(now);
  Recover(now);
  ReplaceKeeper(now);
  while (!doomed_.empty()) {
    const auto [id, reason] = doomed_.back();
    doomed_.pop_back();
    CloseClient(id, reason);
  }
  NoteHoldings(now);
  if (event_log_.has_value()) {
    if (Status s = event_log_->Flush(); !s.ok()) logging::Error("{}", s.message());
  }
  if (registry_changed_ || flow_->changes() != saved_changes_) SaveState();
  if (!jobs_.empty()) idle_since_ns_ = now;
  // Whoever was heard in this turn may be about to register.
  if (options_.idle_exit_s && jobs_.empty() && *events == 0 &&
      now - idle_since_ns_ >= Nanoseconds(*options_.idle_exit_s)) {
    logging::Info("no job for {} s: done", *options_.idle_exit_s);
    stopping_ = true;
  }
  if (!stopping_) return true;
  if (stop_by_ns_ == 0) {
    stop_by_ns_ = now + kStopPatienceNs;
    flow_->BringAllBack(now);
  }
  // Whoever is away would lose what it has here.
  return host_tier_.used_bytes() > 0 && now < stop_by_ns_;
}

int64_t Daemon::NextTimeout(uint64_t now_ns) {
  if ((stopping_ && host_tier_.used_bytes() == 0) || !doomed_.empty()) return 0;
  const auto until = [now_ns](uint64_t at) {
    return at <= now_ns ? int64_t{0} : static_cast<int64_t>(at - now_ns);
  };
  int64_t timeout = -1;
  const auto sooner = [&timeout](int64_t other) {
    timeout = timeout < 0 ? other : std::min(timeout, other);
  };
  if (!clients_.empty() || recovering_ || SomebodyIsReadLater()) sooner(until(next_tick_ns_));
  for (const auto& [id, job] : jobs_) {
    if (job.holder.has_value()) sooner(until(job.holder->next_poll_ns()));
    if (job.orphan_until_ns != 0) sooner(until(job.orphan_until_ns));
    if (job.lines.left_out() > 0) sooner(kSayLeftOutNs);
  }
  if (launcher_lines_.left_out() > 0) sooner(kSayLeftOutNs);
  if (jobs_.empty() && options_.idle_exit_s) {
    sooner(until(idle_since_ns_ + Nanoseconds(*options_.idle_exit_s)));
  }
  if (NeedsKeeper()) sooner(until(keeper_losses_.due_ns()));
  if (keeper_launched_.valid()) sooner(until(keeper_late_ns_));
  if (host_tier_.busy()) sooner(kCopyLookNs);
  if (const auto at = host_tier_.frees_at_ns()) sooner(until(*at));
  if (flow_->again_at_ns() != 0) sooner(until(flow_->again_at_ns()));
  if (flow_->urgency() == flow::Urgency::kFences) {
    if (fences_since_ns_ == 0) fences_since_ns_ = now_ns;
    sooner(now_ns - fences_since_ns_ < kCloseLooksNs ? kCloseLookNs : kFenceLookNs);
  } else {
    fences_since_ns_ = 0;
    if (flow_->urgency() == flow::Urgency::kPlaces) sooner(kFenceLookNs);
    if (flow_->fences_pending() > 0) sooner(kLazyFenceLookNs);
  }
  // A holder or a tick that is due is looked at after the wait.
  if (timeout == 0) next_tick_ns_ = std::min(next_tick_ns_, now_ns);
  return timeout;
}

/// Of whom no event tells that it may be read again; clients are looked at anyway.
bool Daemon::SomebodyIsReadLater() const {
  return std::any_of(controls_.begin(), controls_.end(),
                     [](const auto& entry) { return !entry.second.reads; }) ||
         std::any_of(jobs_.begin(), jobs_.end(),
                     [](const auto& entry) { return !entry.second.accepts; });
}

void Daemon::Tick(uint64_t now_ns) {
  next_tick_ns_ = now_ns + kTickNs;
  flow_->Tick(now_ns);
  LookForBetter(now_ns);
  PollHolders(now_ns);
  CloseOverdue(now_ns);
  ForgetOrphans(now_ns);
  host_tier_.FreeWhatIsKept(now_ns);
  SayLeftOut(now_ns);
  for (auto& [id, job] : jobs_) {
    if (job.accepts || job.share.Spent(now_ns)) continue;
    job.accepts = true;
    loop_.Modify(job.listener_token, EPOLLIN);
  }
  for (auto& [id, client] : controls_) {
    if (!client.reads) UpdateInterest(&client);
  }
  const bool beats = now_ns >= next_beat_ns_;
  if (beats) next_beat_ns_ = now_ns + protocol::kBeatNs;
  for (auto& [id, client] : clients_) {
    if (beats && client.session->ready()) client.session->pages().Beat();
    if (!client.reads) UpdateInterest(&client);
    if (!client.session->connection().has_queued()) continue;
    if (Status s = client.session->connection().Flush(); !s.ok())
      doomed_.emplace_back(id, s.message());
    UpdateInterest(&client);
  }
}

void Daemon::Poison(const flow::Extents& extents) {
  for (const scheduler::Extent& extent : extents) {
    const Status status =
        device_->Poison(extent.offset * options_.unit_bytes, extent.length * options_.unit_bytes);
    if (status.ok() || poison_failed_) continue;
    poison_failed_ = true;
    logging::Error("{}: handed-over memory is not overwritten any more", status.message());
  }
}

void Daemon::Shutdown() {
  // What a predecessor left and this daemon could not take over is for the next one to try: a full
  // disk or a bad flag must not cost the jobs their memory.
  if (adopted_ && !initialised_) return;
  // A registered job, whether it holds anything yet or not: the next daemon takes it over, as from
  // one that was killed.
  const bool has_jobs = flow_ != nullptr && !jobs_.empty() && !renews_pool_;
  if (has_jobs && !keeper_.has_value() && !options_.keeper.empty()) (void)StartKeeper().ok();
  const bool leaves_them = has_jobs && keeper_.has_value();
  if (leaves_them) {
    SaveState();
    dir_.RemoveControlSocket();
    logging::Info("{} jobs wait for the next daemon", jobs_.size());
  } else {
    for (auto& [id, client] : clients_) client.session->Close("sluice-noded stops");
    dir_.Clear();
    if (last_keeper_.has_value()) last_keeper_->Dismiss();
    if (keeper_.has_value() && !keeper_->Bye().ok()) logging::Warn("the keeper does not end");
  }
  if (event_log_.has_value()) (void)event_log_->Flush().ok();
}

}  // namespace sluice::noded
