// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/simulate/pool.h"

#include <algorithm>
#include <string>
#include <utility>

#include "scheduler/ledger/limits.h"
#include "scheduler/policy/operations.h"

namespace sluice::scheduler::simulate {

namespace {

Units ClaimOf(const Workload& workload, const Options& options) {
  const Units peak = workload.plan.peak_units;
  return options.claim_margin ? WithClaimMargin(peak, workload.plan.piece_units) : peak;
}

/// [gate]: GPU time alone from the trough to its launch.
std::vector<double> GateTimes(const Workload& job) {
  std::vector<double> gate_ns;
  double ns = 0;
  size_t next = 0;
  for (size_t k = 0; k < job.kernels.size(); ++k) {
    for (; next < job.plan.gates.size() && job.plan.gates[next].launch == k; ++next) {
      gate_ns.push_back(ns);
    }
    ns += job.kernels[k].alone_ns;
  }
  return gate_ns;
}

/// What a node that has measured the job alone expects of it.
Course CourseOf(const Workload& job, uint32_t groups_per_peak) {
  return Course(job.plan, GateTimes(job), job.alone_ns, job.base_units, groups_per_peak);
}

/// [gate]: the most that is needed from there until the GPU has passed it, which the host is so far
/// ahead of. A process gives back what its GPU has passed, and of what it needs again before that
/// its stream still has what it freed.
std::vector<Units> KeptAt(const Workload& job, double credit_ns) {
  const std::vector<double> gate_ns = GateTimes(job);
  const std::vector<GatePlan>& gates = job.plan.gates;
  const auto before_the_gpu = [&](size_t gate, size_t ahead) {
    return gate_ns[ahead] - gate_ns[gate] < credit_ns ||
           gates[ahead].launch - gates[gate].launch < kAlwaysQueued;
  };
  std::vector<Units> kept(gates.size(), 0);
  for (size_t k = 0; k < gate_ns.size(); ++k) {
    for (size_t g = k; g < gate_ns.size() && before_the_gpu(k, g); ++g) {
      kept[k] = std::max(kept[k], gates[g].need_units);
    }
  }
  return kept;
}

/// All of the pool where the budget changes, and a Ballast keeps what is beyond it.
Units LedgerUnits(const Options& options) {
  const Units budget = options.setting.budget;
  if (budget == 0 || !options.budget_changes.empty()) return options.pool_units;
  return std::min(budget, options.pool_units);
}

}  // namespace

Pool::Pool(const Options& options, const std::vector<JobRun>& runs)
    : options_(options),
      policy_(FindPolicy(options.setting.policy.policy)),
      whole_(TakesTurns(options.setting.policy)),
      ledger_(LedgerUnits(options), options.unit_bytes),
      ballast_(kBeyondBudget, ledger_.pool_units(), options.setting.budget, options.budget_changes),
      asking_(runs.size(), false),
      moves_(runs.size()),
      open_(runs.size()),
      iterations_(runs.size(), 0),
      most_overtaken_(runs.size(), 0) {
  for (const JobRun& run : runs) {
    const Workload& job = *run.workload;
    jobs_.push_back(
        {&run, &job,
         AheadOf(job.plan, job.base_units, options.setting.claims, options.setting.steps),
         KeptAt(job, CreditOf(job, options, options.setting)), 0, nullptr});
  }
}

Units Pool::LimitOf(size_t job) const {
  uint64_t others = 0;
  for (size_t i = 0; i < jobs_.size(); ++i) {
    if (i != job) others += jobs_[i].workload->base_units;
  }
  const auto left =
      static_cast<Units>(ballast_.least() - std::min<uint64_t>(others, ballast_.least()));
  const Units own = jobs_[job].workload->limit;
  return own == 0 ? left : std::min(own, left);
}

Status Pool::Begin() {
  if (options_.record) {
    Record record;
    record.units = ledger_.pool_units();
    record.unit_bytes = options_.unit_bytes;
    record.policy = options_.setting.policy.policy;
    Log(std::move(record));
  }
  Units at = 0;
  for (size_t i = 0; i < jobs_.size(); ++i) {
    const Workload& job = *jobs_[i].workload;
    const Units limit = LimitOf(i);
    if (job.plan.peak_units > limit) {
      const Units others = ballast_.least() - limit;
      return Status(StatusCode::kResourceExhausted,
                    "'" + job.name + "' needs " + ledger_.Bytes(job.plan.peak_units) +
                        " at its peak and the others keep " + ledger_.Bytes(others) +
                        " at their troughs: the pool has " + ledger_.Bytes(ballast_.least()) +
                        ", allowed: from " + ledger_.Bytes(others + job.plan.peak_units));
    }
    if (jobs_[i].run->newcomer) continue;
    Must(ledger_.Admit(Id(i), job.name, job.base_units, limit));
    Must(ledger_.StartUnprofiled(Id(i)));
    Extents base;
    if (job.base_units > 0) base.push_back({at, job.base_units});
    at += job.base_units;
    Must(ledger_.Grant(Id(i), base));
    Must(ledger_.ReachTrough(Id(i), true));
    Known(i);
    if (!options_.record) continue;
    Record record;
    record.event = EventKind::kRestore;
    record.job = Id(i);
    record.name = job.name;
    record.request = job.base_units;
    record.limit = limit;
    record.text = PhaseName(Phase::kParked);
    record.drained = true;
    record.extents = record.base = record.last_trough = base;
    Log(std::move(record));
  }
  ballast_.Try(0, &ledger_, &records_);
  return Status();
}

void Pool::Known(size_t job) {
  const bool predicts =
      policy_ != nullptr && (policy_->opens_in != nullptr || policy_->may_pass != nullptr);
  if (!predicts && options_.setting.policy.phase <= 0) return;
  jobs_[job].course =
      &courses_
           .insert_or_assign(
               Id(job), CourseOf(*jobs_[job].workload, options_.setting.policy.groups_per_peak))
           .first->second;
}

void Pool::Arrive(size_t job) {
  const Workload& workload = *jobs_[job].workload;
  Must(ledger_.Admit(Id(job), workload.name, workload.base_units, LimitOf(job)));
  if (options_.record) {
    Record record;
    record.event = EventKind::kAdmit;
    record.job = Id(job);
    record.name = workload.name;
    record.request = workload.base_units;
    record.limit = LimitOf(job);
    Log(std::move(record));
  }
  Request request;
  request.job = Id(job);
  request.kind = RequestKind::kNewcomer;
  request.ticket = next_ticket_++;
  request.priority = jobs_[job].run->priority;
  requests_.push_back(request);
  asking_[job] = changed_ = true;
}

bool Pool::Ask(size_t job, size_t gate, uint64_t launched) {
  const Member& member = jobs_[job];
  const Workload& workload = *member.workload;
  if (gate == 0) {
    ++iterations_[job];
    jobs_[job].began = launched;
  }
  Units need = workload.plan.gates[gate].need_units;
  for (const Deviation& deviation : member.run->deviations) {
    if (deviation.iteration == iterations_[job] && deviation.gate == gate) need += deviation.units;
  }
  const Job& known = *ledger_.Find(Id(job));
  if (whole_ && known.phase != Phase::kUnprofiled) need = std::max(need, workload.plan.peak_units);
  const Units keep = std::max(need, member.kept[gate]);
  if (known.leased > keep) Release(job, keep, launched);
  Request request;
  request.job = Id(job);
  request.kind = gate == 0 ? RequestKind::kGate0 : RequestKind::kGate;
  if (known.phase == Phase::kUnprofiled) request.kind = RequestKind::kLease;
  request.gate = static_cast<uint32_t>(gate);
  request.units = need - std::min(need, known.leased);
  request.contiguous = std::min<Units>(request.units, 1);  // where memory lies is not modelled
  request.piece = 1;
  request.claim = ClaimOf(workload, options_);
  request.waives = whole_ ? 0 : workload.plan.peak_units - member.ahead[gate];
  request.ticket = next_ticket_++;
  request.priority = member.run->priority;
  request.served_ns = workload.alone_ns * static_cast<double>(iterations_[job]);
  fenced_out_.push_back(request);
  asking_[job] = changed_ = true;
  return request.units > 0;
}

bool Pool::MustDrain(size_t job) const {
  return ledger_.Find(Id(job))->phase == Phase::kUnprofiled &&
         iterations_[job] >= JobRun::kMeasured;
}

bool Pool::Deviates(size_t job) const {
  return std::any_of(jobs_[job].run->deviations.begin(), jobs_[job].run->deviations.end(),
                     [&](const Deviation& deviation) {
                       return deviation.iteration == iterations_[job] && deviation.units > 0;
                     });
}

void Pool::Release(size_t job, Units keep, uint64_t launched) {
  const Job& known = *ledger_.Find(Id(job));
  Extents transient = Subtract(ledger_.map().Held(Id(job), UnitState::kLeased), known.base);
  Units surplus = known.leased - std::min(keep, known.leased);
  surplus = std::min(surplus, TotalUnits(transient));
  if (surplus == 0) return;
  // From the middle of the pool towards the job's own end, so that what it keeps stays compact.
  if (known.terms.end == End::kLow) std::reverse(transient.begin(), transient.end());
  Extents released;
  for (const Extent& extent : transient) {
    const Units length = std::min(surplus, extent.length);
    if (length == 0) break;
    surplus -= length;
    released.push_back(known.terms.end == End::kLow ? Extent{extent.end() - length, length}
                                                    : Extent{extent.offset, length});
  }
  released = Merge(std::move(released));
  Must(ledger_.Release(Id(job), released, next_release_));
  open_[job].push_back({next_release_, launched});
  if (options_.record) {
    Record record;
    record.event = EventKind::kRelease;
    record.job = Id(job);
    record.release = next_release_;
    record.extents = std::move(released);
    Log(std::move(record));
  }
  ++next_release_;
  // Its stream may use at once what it frees itself. Nothing bounds how far a host runs ahead whom
  // nobody waits for, so it would hold several iterations' memory otherwise.
  if (jobs_.size() == 1) Fenced(job, launched);
}

void Pool::Done(size_t job, uint64_t done, double now_ns) {
  now_ns_ = now_ns;
  Fenced(job, done);
  const Member& member = jobs_[job];
  if (member.course == nullptr || done < member.began) return;
  if (member.course->Reach(static_cast<uint32_t>(done - member.began), now_ns)) changed_ = true;
}

void Pool::Fenced(size_t job, uint64_t done) {
  while (!open_[job].empty() && open_[job].front().launches <= done) {
    const ReleaseId id = open_[job].front().id;
    open_[job].pop_front();
    Must(ledger_.Fenced(Id(job), id));
    changed_ = true;
    if (!options_.record) continue;
    Record record;
    record.event = EventKind::kFenced;
    record.job = Id(job);
    record.release = id;
    Log(std::move(record));
  }
}

void Pool::Trough(size_t job, uint64_t launched, bool drained) {
  Release(job, jobs_[job].workload->base_units, launched);
  if (drained) Fenced(job, launched);
  changed_ = true;
  const bool unknown = ledger_.Find(Id(job))->phase == Phase::kUnprofiled;
  if (unknown && !MustDrain(job)) return;  // it is still measured
  Must(ledger_.ReachTrough(Id(job), drained));
  if (unknown) Known(job);
  if (jobs_[job].course != nullptr) jobs_[job].course->End(now_ns_);
  if (!options_.record) return;
  Record record;
  record.event = EventKind::kTrough;
  record.job = Id(job);
  record.drained = drained;
  record.iteration = iterations_[job];
  Log(std::move(record));
}

void Pool::Refused(size_t job) {
  Must(ledger_.Die(Id(job)));
  if (options_.record) Log(EventKind::kDeath, job);
  open_[job].clear();
  courses_.erase(Id(job));
  jobs_[job].course = nullptr;
  changed_ = true;
}

void Pool::Gone(size_t job) {
  if (ledger_.Find(Id(job))->phase != Phase::kDying) Refused(job);
  Must(ledger_.LastHolderGone(Id(job)));
  if (options_.record) Log(EventKind::kFree, job);
  changed_ = true;
}

Result<std::vector<Pool::Answered>> Pool::Answer(double now_ns) {
  now_ns_ = now_ns;
  if (!broken_.ok()) return broken_;
  PromoteFencedOut();
  if (now_ns >= again_ns()) changed_ = true;
  EndMoves();
  if (!changed_) return std::vector<Answered>();
  ballast_.Try(now_ns, &ledger_, &records_);
  if (!ballast_.pending()) budget_since_ns_.resize(ballast_.due(), now_ns);
  return Decide(now_ns);
}

double Pool::AgainNs(double until_ns) {
  const bool predicts = policy_ != nullptr && policy_->opens_in != nullptr;
  if (predicts && again_known_ns_ < until_ns && again_ns_ >= again_known_ns_) {
    // Of the state that it was asked about: nothing has changed since but the time.
    constexpr double kRounding = 1;
    const double within = until_ns - asked_ns_ + kRounding;
    again_ns_ = asked_ns_ +
                AskAgainIn(ledger_, Seen(), options_.setting.policy, OutlookAt(asked_ns_), within);
    again_known_ns_ = until_ns;
  }
  return again_ns();
}

Outlook Pool::OutlookAt(double now_ns) const {
  return {now_ns, courses_.empty() ? nullptr : &courses_};
}

std::vector<Request> Pool::Seen() const {
  if (!ballast_.pending()) return requests_;
  // Nobody begins an iteration while the budget is to fall: that is what makes room for it.
  std::vector<Request> inside;
  for (const Request& request : requests_) {
    const bool begins =
        request.kind == RequestKind::kGate0 || request.kind == RequestKind::kNewcomer;
    if (begins) continue;
    inside.push_back(request);
    inside.back().due = true;  // nobody goes on instead
  }
  return inside;
}

Result<std::vector<Pool::Answered>> Pool::Decide(double now_ns) {
  const Outlook outlook = OutlookAt(now_ns);
  const Config& config = options_.setting.policy;
  std::vector<Answered> answered;
  while (true) {
    for (Request& request : requests_) request.insurance = InsuranceOf(request);
    const std::vector<Request> requests = Seen();
    const auto decision = Next(ledger_, requests, config, outlook);
    if (!decision) {
      asked_ns_ = again_known_ns_ = now_ns;
      again_ns_ = std::numeric_limits<double>::infinity();
      changed_ = false;
      return answered;
    }
    ++decisions_;
    const JobId id = decision->job;
    const bool deny = decision->kind == Decision::Kind::kDeny;
    if (deny && !Deviates(id - 1)) return Status(StatusCode::kResourceExhausted, decision->reason);
    if (options_.record) {
      for (Record& record : RecordsOf(*decision, requests, ledger_)) {
        record.iteration = iterations_[id - 1];
        Log(std::move(record));
      }
    }
    Must(MakeOperations(*decision, requests, &ledger_));
    if (decision->kind == Decision::Kind::kReclaim) continue;
    if (decision->kind == Decision::Kind::kEvict) {
      MoveAway(requests[decision->request]);
      continue;
    }
    const Request request = requests[decision->request];
    if (!deny) {
      const auto at = std::find_if(requests_.begin(), requests_.end(),
                                   [id](const Request& r) { return r.job == id; });
      Decision same = *decision;
      same.request = static_cast<size_t>(at - requests_.begin());
      CountOvertaken(same, &requests_);
    }
    if (ComesBack(request)) {
      BringBack(id - 1);
      continue;
    }
    if (request.kind == RequestKind::kGate0 || request.kind == RequestKind::kNewcomer) {
      most_overtaken_[id - 1] = std::max(most_overtaken_[id - 1], request.overtaken);
    }
    std::erase_if(requests_, [id](const Request& r) { return r.job == id; });
    asking_[id - 1] = false;
    answered.push_back({id - 1, deny ? decision->reason : std::string()});
    if (deny) {
      Refused(id - 1);
    } else {
      Granted(request);
    }
  }
}

void Pool::Granted(const Request& request) {
  Course* course = jobs_[request.job - 1].course;
  if (course == nullptr) return;
  if (request.kind == RequestKind::kGate0) course->Open(now_ns_);
  course->Pass(request.gate, now_ns_);
}

void Pool::PromoteFencedOut() {
  for (size_t i = 0; i < fenced_out_.size();) {
    if (WaitsForOwnFences(ledger_, fenced_out_[i])) {
      ++i;
      continue;
    }
    requests_.push_back(fenced_out_[i]);
    fenced_out_.erase(fenced_out_.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

void Pool::Must(const Status& status) {
  if (broken_.ok() && !status.ok()) broken_ = Status(StatusCode::kInternal, status.message());
}

bool Pool::SomebodyElseAsks(size_t job) const {
  return std::any_of(requests_.begin(), requests_.end(),
                     [job](const Request& request) { return request.job != Id(job); });
}

bool Pool::Presses(size_t job) const { return PressureOn(ledger_, Id(job), false); }

void Pool::Log(Record record) {
  record.t_ns = static_cast<uint64_t>(now_ns_);
  records_.push_back(std::move(record));
}

void Pool::Log(EventKind event, size_t job) {
  Record record;
  record.event = event;
  record.job = Id(job);
  Log(std::move(record));
}

}  // namespace sluice::scheduler::simulate
