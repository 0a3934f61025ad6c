// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "tests/fuzz/daemon_world.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <filesystem>

#include "common/log/log.h"
#include "noderuntime/eventlog/record_json.h"
#include "scheduler/audit/audit.h"

namespace sluice::noded {

namespace {
uint64_t g_now_ns = 0;
uint64_t g_cpu_ns = 0;
uint64_t g_wakeup_ns = 0;
}  // namespace

/// Stands in for clock.cc: what takes the daemon seconds takes the fuzzer none.
uint64_t NowNs() { return g_now_ns; }
/// Nothing that a run does depends on how fast the machine is.
uint64_t ThreadCpuNs() { return g_cpu_ns += g_wakeup_ns; }

}  // namespace sluice::noded

namespace sluice::session {

namespace {
UniqueFd g_process;  // readable: it has ended
}

/// Stands in for peer.cc: this process is as many as the fuzzer likes, one after the other.
Result<Peer> PeerOf(int socket) {
  ucred credentials = {};
  socklen_t length = sizeof credentials;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0) {
    return Status::FromErrno(errno, "peer credentials");
  }
  Peer peer;
  peer.pid = credentials.pid;
  peer.uid = credentials.uid;
  peer.pidfd.reset(::fcntl(g_process.get(), F_DUPFD_CLOEXEC, 0));
  return peer;
}

}  // namespace sluice::session

namespace sluice::fuzz {

using protocol::FrameType;
using scheduler::Extents;
using scheduler::UnitState;

namespace {

constexpr uint64_t kStartNs = 1'000'000'000'000;
constexpr uint32_t kHonestSlot = 7;
constexpr uint64_t kTurnNs = 20'000;

}  // namespace

FuzzDevice::FuzzDevice(scheduler::Units pool_units)
    : testing::FakeGpu(pool_units * DaemonWorld::kUnit) {
  facts.name = "fuzz";
  facts.uuid = {9, 8, 7};
  facts.total_bytes = 2 * pool_units * DaemonWorld::kUnit;
  facts.granularity = DaemonWorld::kUnit;
}

DaemonWorld::DaemonWorld(const std::string& dir, const flow::FaultPlan& faults,
                         const Options& wanted)
    : dir_(dir), device_(wanted.pool_units) {
  logging::Silence();
  BeginProcess();
  noded::g_now_ns = kStartNs;
  WakeupsCost(0);
  std::filesystem::remove_all(dir_);
  std::filesystem::create_directories(dir_);
  config::Options options;
  options.runtime_dir = dir_ + "/run";
  options.unit_bytes = kUnit;
  options.handle_bytes = 16 * kUnit;
  options.pool_bytes = wanted.pool_units * kUnit;
  options.policy = wanted.policy;
  options.claims = wanted.claims;
  options.context_bytes = kUnit;
  options.patience_s = 5;
  options.event_log = dir_ + "/events";
  Result<std::unique_ptr<noded::Daemon>> daemon = noded::Daemon::Create(options, &device_, faults);
  if (!daemon.ok()) {
    Violate("the daemon does not start: " + daemon.status().message());
    return;
  }
  daemon_ = std::move(*daemon);
  honest_launcher_.emplace(dir_ + "/run/noded.sock");
  const std::string path = RegisterAt(&*honest_launcher_, kHonestLimit * kUnit, 4 * kUnit, 0);
  honest_.emplace(path);
  if (!Handshake(&*honest_)) {
    Violate("the honest job gets no session");
    return;
  }
  HonestLease(4);
  if (!wanted.fuzzers_jobs) return;
  // Two for the fuzzer: one whose limit is the pool's affair, one with terms of its own.
  Register(0, 0, 0);
  Register(12 * kUnit, 2 * kUnit, 0);
}

DaemonWorld::~DaemonWorld() { daemon_.reset(); }

void DaemonWorld::Violate(const std::string& text) {
  if (!violation_.has_value()) violation_ = text;
}

void DaemonWorld::Turn() {
  if (daemon_ == nullptr) return;
  noded::g_now_ns += kTurnNs;
  const Result<bool> goes_on = daemon_->RunOnce(0);
  if (!goes_on.ok()) return Violate("the daemon fails: " + goes_on.status().message());
  if (!*goes_on) return Violate("the daemon ends");
  Check();
}

void DaemonWorld::WakeupsCost(uint64_t cpu_ns) { noded::g_wakeup_ns = cpu_ns; }

void DaemonWorld::Pass(uint64_t ns) {
  noded::g_now_ns += ns;
  Turn();
}

std::string DaemonWorld::RegisterAt(FuzzClient* launcher, uint64_t limit_bytes,
                                    uint64_t request_bytes, uint32_t gpu) {
  protocol::Register wanted = {};
  wanted.limit_bytes = limit_bytes;
  wanted.request_bytes = request_bytes;
  wanted.gpu = gpu;
  wanted.name[0] = 'j';
  if (!launcher->valid() || !launcher->SendFrame(wanted, FrameType::kRegister, 1)) return "";
  Turns(3);
  while (const std::optional<Answer> answer = launcher->Receive()) {
    if (answer->type == FrameType::kRegistered) return answer->path;
  }
  return "";
}

void DaemonWorld::Register(uint64_t limit_bytes, uint64_t request_bytes, uint32_t gpu) {
  if (paths_.size() + 1 >= kMaxJobs) return;
  FuzzClient launcher(dir_ + "/run/noded.sock");
  const std::string path = RegisterAt(&launcher, limit_bytes, request_bytes, gpu);
  if (path.empty()) return;
  launchers_.push_back(std::move(launcher));
  paths_.push_back(path);
}

void DaemonWorld::Connect(size_t job) {
  if (paths_.empty() || clients_.size() >= kMaxClients) return;
  FuzzClient client(paths_[job % paths_.size()]);
  if (client.valid()) clients_.push_back(std::move(client));
  Turns(2);
}

void DaemonWorld::ConnectControl() {
  if (clients_.size() >= kMaxClients) return;
  FuzzClient client(dir_ + "/run/noded.sock");
  if (client.valid()) clients_.push_back(std::move(client));
  Turns(2);
}

void DaemonWorld::Open(size_t job) {
  const size_t before = clients_.size();
  Connect(job);
  if (clients_.size() > before) (void)Handshake(&clients_.back());
}

bool DaemonWorld::Handshake(FuzzClient* client) {
  if (!client->valid()) return false;
  client->SendHello(device_.info().uuid);
  Turns(3);
  bool welcome = false;
  while (const std::optional<Answer> answer = client->Receive()) {
    welcome = welcome || answer->type == FrameType::kWelcome;
  }
  if (!welcome) return false;
  client->SendFrame(protocol::Ready{}, FrameType::kReady);
  Turns(2);
  return !client->closed();
}

void DaemonWorld::BeginProcess() { session::g_process.reset(::eventfd(0, EFD_CLOEXEC)); }

void DaemonWorld::EndProcess() {
  if (daemon_ == nullptr || violation_.has_value()) return;
  ending_ = true;
  device_.used = false;
  ::eventfd_write(session::g_process.get(), 1);
  // Nothing is left of it: no unit, and nothing outside the pool.
  const auto lingers = [this] {
    const auto& jobs = flow().ledger().jobs();
    return std::any_of(jobs.begin(), jobs.end(),
                       [](const auto& job) { return job.phase == scheduler::Phase::kDying; }) ||
           std::any_of(flow().outside().jobs().begin(), flow().outside().jobs().end(),
                       [this](const auto& entry) {
                         return flow().Find(entry.first) == nullptr &&
                                flow().outside().charged(entry.first) > 0;
                       });
  };
  Turns(2);
  for (int i = 0; i < 40 && lingers() && !violation_.has_value(); ++i) Pass(100'000'000);
  if (lingers()) Violate("a process and its memory are gone, and its job is not");
  device_.used = true;
  ending_ = false;
  dead_.clear();
  leased_.clear();
  BeginProcess();
}

void DaemonWorld::HangUp(size_t client) {
  if (clients_.empty()) return;
  clients_.erase(clients_.begin() + static_cast<std::ptrdiff_t>(client % clients_.size()));
  Turns(2);
}

/// The honest job has a limit that was given and no profile, and it was first: everything up to
/// that limit is promised to it, whatever the others do (I0, I3).
void DaemonWorld::HonestLease(scheduler::Units units) {
  protocol::Lease lease = {};
  lease.units = units;
  lease.contiguous = 1;
  if (!honest_->SendFrame(lease, FrameType::kLease, ++seq_)) {
    return Violate("the honest job's socket is gone");
  }
  Turns(4);
  scheduler::Units got = 0;
  bool last = false;
  while (const std::optional<Answer> answer = honest_->Receive()) {
    if (answer->type != FrameType::kGrant || answer->seq != seq_) continue;
    for (const protocol::Extent& extent : answer->extents) {
      book_.push_back({extent.offset, extent.length});
      got += extent.length;
    }
    last = last || answer->last;
  }
  if (!last || got != units) {
    Violate("the honest job asks for " + std::to_string(units) +
            " units inside its limit and is given " + std::to_string(got) + "; " +
            daemon_->flow().WhyWaiting(kHonest));
  }
  book_ = scheduler::Merge(std::move(book_));
}

void DaemonWorld::HonestStep() {
  if (violation_.has_value()) return;
  if (!released_.has_value()) {
    const scheduler::Extent whole = book_.back();
    const scheduler::Extent one = {whole.end() - 1, 1};
    ++honest_mark_;
    if (!honest_->SendRelease({{one.offset, one.length}}, {{kHonestSlot, 0, honest_mark_}})) {
      return Violate("the honest job's socket is gone");
    }
    released_ = one;
    book_ = scheduler::Subtract(book_, {one});
    return Turns(3);
  }
  honest_->mark()->mark[kHonestSlot].store(honest_mark_);
  released_.reset();
  HonestLease(1);
}

void DaemonWorld::HonestTurn() {
  if (violation_.has_value()) return;
  const Extents before = book_;
  HonestLease(1);
  const Extents more = scheduler::Subtract(book_, before);
  if (violation_.has_value() || more.empty()) return;
  ++honest_mark_;
  if (!honest_->SendRelease({{more[0].offset, more[0].length}}, {{kHonestSlot, 0, honest_mark_}})) {
    return Violate("the honest job's socket is gone");
  }
  released_ = more[0];
  book_ = before;
  Turns(2);
  released_.reset();
  honest_->mark()->mark[kHonestSlot].store(honest_mark_);
  Turns(2);
}

scheduler::Extents DaemonWorld::HeldByOthers() const {
  Extents held;
  for (const scheduler::Span& span : daemon_->flow().ledger().map().spans()) {
    if (span.state != UnitState::kLeased || span.holder == kHonest) continue;
    held.push_back({span.offset, span.length});
  }
  return held;
}

void DaemonWorld::Check() {
  if (violation_.has_value()) return;
  const scheduler::Ledger& ledger = daemon_->flow().ledger();
  if (Status s = ledger.CheckInvariants(); !s.ok()) return Violate("ledger: " + s.message());
  if (honest_.has_value() && seq_ > 0) CheckHonest();
  CheckTheDead();
}

void DaemonWorld::CheckHonest() {
  const scheduler::Ledger& ledger = daemon_->flow().ledger();
  const scheduler::Job* job = ledger.Find(kHonest);
  if (honest_->closed() || job == nullptr || job->limit != kHonestLimit) {
    return Violate("the honest job has lost its session or its limit");
  }
  if (!scheduler::Subtract(book_, ledger.map().Held(kHonest, UnitState::kLeased)).empty()) {
    return Violate("the honest job was given what is not its own");
  }
  // In the socket it still counts as leased.
  if (!released_.has_value()) return;
  const Extents out = scheduler::Union(ledger.map().Held(kHonest, UnitState::kUnfenced),
                                       ledger.map().Held(kHonest, UnitState::kLeased));
  if (!scheduler::Subtract({*released_}, out).empty()) {
    Violate("a unit is free before its fence is reached");
  }
}

/// While its process lives, what a session held when it ended stays where it is.
void DaemonWorld::CheckTheDead() {
  if (ending_) return;
  const scheduler::Ledger& ledger = daemon_->flow().ledger();
  for (const auto& [id, extents] : leased_) {
    const scheduler::Job* job = ledger.Find(id);
    if (job != nullptr && job->phase != scheduler::Phase::kDying) continue;
    // It may have given them back in the very turn in which it ended; what counts is what is
    // quarantined then, unless nothing is.
    const Extents kept = ledger.map().Held(id, UnitState::kQuarantined);
    if (kept.empty() && !extents.empty()) {
      return Violate("what job " + std::to_string(id) + " held when it ended is not kept");
    }
    dead_ = scheduler::Union(dead_, kept);
  }
  leased_.clear();
  for (const scheduler::Job& job : ledger.jobs()) {
    if (job.phase == scheduler::Phase::kDying || job.leased == 0) continue;
    leased_[job.id] = ledger.map().Held(job.id, UnitState::kLeased);
  }
  for (const scheduler::Extent& extent : dead_) {
    for (scheduler::Units unit = extent.offset; unit < extent.end(); ++unit) {
      for (const scheduler::Span& span : ledger.map().spans()) {
        if (unit < span.offset || unit >= span.end()) continue;
        if (span.state != UnitState::kQuarantined)
          Violate("a dead job's unit is lent while it lives");
      }
    }
  }
}

void DaemonWorld::End() {
  if (daemon_ == nullptr || violation_.has_value()) return;
  clients_.clear();
  launchers_.clear();
  Turns(4);
  if (released_.has_value()) HonestStep();
  HonestStep();
  if (violation_.has_value()) return;
  const Result<std::vector<scheduler::Record>> log = eventlog::ReadLogFile(dir_ + "/events");
  if (!log.ok()) return Violate("the event log: " + log.status().message());
  const scheduler::AuditReport report = scheduler::Audit(*log);
  if (report.ok()) return;
  Violate("audit: " + (report.violations.empty() ? std::string("moments over the budget or a limit")
                                                 : report.violations.front().rule + ": " +
                                                       report.violations.front().text));
}

}  // namespace sluice::fuzz
