// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/simulate/world.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace sluice::scheduler::simulate {

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

std::vector<const Workload*> WorkloadsOf(const std::vector<JobRun>& runs) {
  std::vector<const Workload*> workloads;
  workloads.reserve(runs.size());
  for (const JobRun& run : runs) workloads.push_back(run.workload);
  return workloads;
}

std::unique_ptr<Paging> PagingOf(const std::vector<const Workload*>& workloads,
                                 const Options& options) {
  if (!options.paging) return nullptr;
  return std::make_unique<Paging>(*options.paging, options.pool_units * options.unit_bytes,
                                  workloads);
}

}  // namespace

World::World(const std::vector<JobRun>& runs, const Machine& machine, const Options& options)
    : runs_(runs),
      workloads_(WorkloadsOf(runs)),
      machine_(machine),
      options_(options),
      paging_(PagingOf(workloads_, options)),
      gpu_(machine, workloads_, paging_.get()),
      pool_(options, runs),
      hosts_(runs.size()) {
  for (size_t i = 0; i < runs.size(); ++i) {
    hosts_[i].ready_ns = runs[i].start_ns;
    if (options.managed && runs[i].newcomer) hosts_[i].next = Next::kBegin;
    hosts_[i].credit_ns = CreditOf(*runs[i].workload, options, options.setting);
  }
  outcome_.jobs.resize(runs.size());
}

Result<Outcome> World::Play() {
  if (options_.managed) {
    if (Status begun = pool_.Begin(); !begun.ok()) return begun;
  }
  std::vector<size_t> ended;
  while (!measured_) {
    if (Status moved = MoveHosts(); !moved.ok()) return moved;
    double next = gpu_.UntilNext();
    for (const Host& host : hosts_) {
      if (host.stage == Stage::kSleeps) next = std::min(next, host.ready_ns - now_ns_);
    }
    if (options_.managed) {
      next = std::min(next, std::max(0.0, pool_.AgainNs(now_ns_ + next) - now_ns_));
    }
    if (next == kNever && NobodyLeft()) break;
    if (next == kNever) return Status(StatusCode::kInternal, "the model stands still");
    now_ns_ += next;
    if (now_ns_ > options_.most_ns) {
      return Status(StatusCode::kResourceExhausted,
                    "the run is longer than " + std::to_string(options_.most_ns / 1e9) + " s");
    }
    ended.clear();
    gpu_.Advance(next, &ended);
    for (const size_t job : ended) OnEnded(job);
  }
  return Finish();
}

Status World::MoveHosts() {
  for (bool moved = true; moved;) {
    moved = false;
    for (size_t job = 0; job < hosts_.size(); ++job) {
      if (hosts_[job].stage != Stage::kSleeps || hosts_[job].ready_ns > now_ns_) continue;
      Step(job);
      moved = true;
    }
    if (!options_.managed) continue;
    auto answered = pool_.Answer(now_ns_);
    if (!answered.ok()) return answered.status();
    outcome_.most_held = std::max(outcome_.most_held, pool_.held());
    if (pool_.held() > pool_.budget()) {
      return Status(StatusCode::kInternal, "more is held than the budget");
    }
    for (size_t job = 0; job < hosts_.size(); ++job) {
      if (gpu_.queued(job) == 0) pool_.Still(job, now_ns_);
    }
    for (const Pool::Answered& answer : *answered) {
      if (Status status = Answered(answer); !status.ok()) return status;
      moved = true;
    }
  }
  return Status();
}

Status World::Answered(const Pool::Answered& answer) {
  const size_t job = answer.job;
  JobOutcome& outcome = outcome_.jobs[job];
  const double waited = now_ns_ - hosts_[job].asked_ns;
  outcome.waited_ns += waited;
  outcome.longest_wait_ns = std::max(outcome.longest_wait_ns, waited);
  outcome.most_held = std::max(outcome.most_held, pool_.held(job));
  if (!answer.refused.empty()) {
    outcome.refused = answer.refused;
    Leave(job);
  } else if (hosts_[job].next == Next::kBegin) {
    hosts_[job].next = Next::kArrive;
    Arrive(job);
  } else {
    PassGate(job);
  }
  return Status();
}

void World::Sleep(size_t job, double ns, Next next) {
  Host& host = hosts_[job];
  host.stage = Stage::kSleeps;
  host.ready_ns = now_ns_ + ns;
  host.next = next;
}

void World::Step(size_t job) {
  switch (hosts_[job].next) {
    case Next::kBegin:
      hosts_[job].stage = Stage::kGate;
      hosts_[job].asked_ns = now_ns_;
      return pool_.Arrive(job);
    case Next::kArrive:
      return Arrive(job);
    case Next::kLaunch:
      return Launch(job);
    case Next::kTrough:
      return Trough(job);
  }
}

void World::Arrive(size_t job) {
  Host& host = hosts_[job];
  const std::vector<GatePlan>& gates = workloads_[job]->plan.gates;
  if (options_.managed && host.gate < gates.size() && gates[host.gate].launch == host.at) {
    host.stage = Stage::kGate;
    host.asked_ns = now_ns_;
    const bool wants = pool_.Ask(job, host.gate, gpu_.launched(job));
    if (hosts_.size() > 1 && (wants || host.gate == 0)) host.owed_ns += options_.gate_ns;
    return;
  }
  const double stall_ns = StallNs(job);
  const Kernel& kernel = workloads_[job]->kernels[host.at];
  Sleep(job,
        stall_ns + std::exchange(host.owed_ns, 0) + kernel.host_ns +
            kernel.calls * static_cast<double>(machine_.alloc_ns) +
            kernel.launches * static_cast<double>(machine_.launch_ns),
        Next::kLaunch);
}

double World::StallNs(size_t job) {
  if (!options_.managed) return 0;
  double ns = 0;
  for (const Stall& stall : runs_[job].stalls) {
    if (stall.iteration == pool_.iterations(job) && stall.launch == hosts_[job].at) ns += stall.ns;
  }
  return ns;
}

void World::PassGate(size_t job) {
  ++hosts_[job].gate;
  Arrive(job);  // there may be no second gate at this launch: its number is larger
}

void World::Launch(size_t job) {
  Host& host = hosts_[job];
  if (gpu_.queued(job) >= machine_.launch_queue) {
    host.stage = Stage::kQueue;
    return;
  }
  gpu_.Launch(job);
  ++host.at;
  if (Ahead(job)) {
    host.stage = Stage::kCredit;
    return;
  }
  GoOn(job);
}

/// Its host has issued more than it may before the GPU has come closer.
bool World::Ahead(size_t job) const {
  return options_.managed && hosts_.size() > 1 && gpu_.queued(job) > kAlwaysQueued &&
         gpu_.queued_ns(job) > hosts_[job].credit_ns;
}

void World::GoOn(size_t job) {
  const Workload& workload = *workloads_[job];
  if (hosts_[job].at < workload.kernels.size()) return Arrive(job);
  Sleep(job, workload.calls_after * static_cast<double>(machine_.alloc_ns), Next::kTrough);
}

void World::Trough(size_t job) {
  Host& host = hosts_[job];
  const bool drained = gpu_.queued(job) == 0;
  if (options_.managed) {
    const Setting& setting = options_.setting;
    const bool wanted = (setting.drain == Drain::kWhenOthersWait && pool_.SomebodyElseAsks(job)) ||
                        (setting.drain == Drain::kWhenOthersAreThere && pool_.Presses(job));
    // Strict turns: the next one's first kernel comes after this one's last.
    const bool strict = setting.policy.policy == "temporal" && hosts_.size() > 1;
    const bool leaves =
        runs_[job].leaves_after > 0 && pool_.iterations(job) >= runs_[job].leaves_after;
    if (!drained && (strict || wanted || leaves || pool_.MustDrain(job))) {
      host.stage = Stage::kDrains;
      return;
    }
    pool_.Trough(job, gpu_.launched(job), drained);
    if (leaves) return Leave(job);
  }
  host.at = 0;
  host.gate = 0;
  Sleep(job, workloads_[job]->gap_ns, Next::kArrive);
}

/// What it has launched is still done; then its memory is free.
void World::Leave(size_t job) {
  hosts_[job].stage = Stage::kGone;
  if (gpu_.queued(job) == 0) pool_.Gone(job);
  NoteWarm();
  measured_ = Measured();
}

void World::OnEnded(size_t job) {
  Host& host = hosts_[job];
  const uint64_t done = gpu_.done(job);
  if (host.stage == Stage::kGone) {
    if (gpu_.queued(job) == 0) pool_.Gone(job);
    return;
  }
  if (options_.managed) pool_.Done(job, done, now_ns_);
  if (options_.managed && gpu_.queued(job) == 0) pool_.Still(job, now_ns_);
  if (done % workloads_[job]->kernels.size() == 0) {
    outcome_.jobs[job].ends_ns.push_back(now_ns_);
    NoteWarm();
    measured_ = Measured();
  }
  if (host.stage == Stage::kCredit && !Ahead(job)) GoOn(job);
  if (host.stage == Stage::kQueue) Launch(job);
  if (host.stage == Stage::kDrains && gpu_.queued(job) == 0) Trough(job);
}

double World::WarmUntil() const {
  double warm = 0;
  for (size_t i = 0; i < hosts_.size(); ++i) {
    if (hosts_[i].stage == Stage::kGone) continue;
    const std::vector<double>& ends = outcome_.jobs[i].ends_ns;
    if (ends.size() <= options_.warm_up) return kNever;
    warm = std::max(warm, ends[options_.warm_up]);
  }
  return warm;
}

void World::NoteWarm() {
  if (warm_ns_ >= 0 || WarmUntil() == kNever) return;
  warm_ns_ = now_ns_;
  for (size_t i = 0; i < hosts_.size(); ++i) done_warm_.push_back(gpu_.done_ns(i));
}

bool World::NobodyLeft() const {
  return std::all_of(hosts_.begin(), hosts_.end(),
                     [](const Host& host) { return host.stage == Stage::kGone; });
}

/// A slice of residence for each job, where its base may be in host memory.
double World::SlicesNs() const {
  const Config& config = options_.setting.policy;
  if (config.residents == 0 || config.residents >= runs_.size()) return 0;
  return static_cast<double>(config.slice_ns) * static_cast<double>(runs_.size());
}

bool World::Measured() const {
  if (options_.managed && pool_.budget_since_ns().size() < options_.budget_changes.size())
    return false;
  const double warm = WarmUntil();
  if (now_ns_ < warm + SlicesNs()) return false;
  for (size_t i = 0; i < hosts_.size(); ++i) {
    if (hosts_[i].stage == Stage::kGone) continue;
    const std::vector<double>& ends = outcome_.jobs[i].ends_ns;
    const auto first = std::lower_bound(ends.begin(), ends.end(), warm);
    if (ends.end() - first <= static_cast<std::ptrdiff_t>(options_.iterations)) return false;
  }
  return true;
}

Outcome World::Finish() {
  const double warm = WarmUntil();
  for (size_t i = 0; i < outcome_.jobs.size(); ++i) {
    JobOutcome& job = outcome_.jobs[i];
    // Who left before the others had warmed up is measured over all it did.
    auto first = std::lower_bound(job.ends_ns.begin(), job.ends_ns.end(), warm);
    if (job.ends_ns.end() - first < 2) first = job.ends_ns.begin();
    job.iterations = static_cast<uint32_t>(job.ends_ns.size());
    job.evictions = pool_.evictions(i);
    job.most_overtaken = pool_.most_overtaken(i);
    if (job.ends_ns.end() - first < 2) continue;
    const auto count = static_cast<double>(job.ends_ns.end() - first - 1);
    job.iteration_ns = (job.ends_ns.back() - *first) / count;
    job.progress = workloads_[i]->alone_ns / job.iteration_ns;
    if (hosts_[i].stage != Stage::kGone && warm_ns_ >= 0 && now_ns_ > warm_ns_) {
      job.progress = (gpu_.done_ns(i) - done_warm_[i]) / (now_ns_ - warm_ns_);
    }
    job.slowdown = gpu_.done_ns(i) > 0 ? gpu_.busy_ns(i) / gpu_.done_ns(i) : 1;
  }
  outcome_.elapsed_ns = now_ns_;
  if (paging_ != nullptr) outcome_.paging = paging_->totals();
  outcome_.decisions = pool_.decisions();
  outcome_.budget_since_ns = pool_.budget_since_ns();
  outcome_.records = pool_.TakeRecords();
  return std::move(outcome_);
}

}  // namespace sluice::scheduler::simulate
