// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/tuner/tuner.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "common/bytes.h"
#include "scheduler/ledger/limits.h"

namespace sluice::tuner {

namespace {

namespace simulate = scheduler::simulate;
using scheduler::Phase;

constexpr size_t kRemembered = 32;
Way Turns() { return {"temporal", 1, scheduler::Claims::kContract}; }

/// What those keep and hold who take no part, and pass no gate: what is beyond the operator's
/// budget left out.
flow::Units KeptByOthers(const flow::Flow& flow) {
  uint64_t kept = 0;
  for (const scheduler::Job& job : flow.ledger().jobs()) {
    if (job.settled && job.id != scheduler::kBeyondBudget) kept += job.limit;
  }
  return static_cast<flow::Units>(std::min<uint64_t>(kept, flow.wanted_budget()));
}

}  // namespace

std::string WayText(const Way& way, uint64_t unit_bytes) {
  std::string text = way.policy + ", " + std::to_string(way.lanes) +
                     (way.lanes == 1 ? " lane" : " lanes") + ", claims by " +
                     std::string(scheduler::ClaimsName(way.claims));
  if (way.soft_budget != 0) text += ", in " + FormatBytes(way.soft_budget * unit_bytes);
  if (way.residents != 0)
    text += ", " + std::to_string(way.residents) + " bases in the pool, the others by turns";
  if (way.credit_parts != scheduler::kCreditParts) {
    text += ", credit 1/" + std::to_string(way.credit_parts) + " of an iteration";
  }
  return text;
}

const char* StateName(State state) {
  constexpr std::array<const char*, 5> kNames = {"idle", "waiting", "searching", "measuring",
                                                 "chosen"};
  return kNames[static_cast<size_t>(state)];
}

Tuner::Tuner(const TunerOptions& options, Searcher* searcher)
    : options_(options), searcher_(searcher) {}

std::optional<Tuner::Key> Tuner::KeyOf(const flow::Flow& flow) {
  Key key;
  for (const scheduler::Job& job : flow.ledger().jobs()) {
    // It keeps what it has and passes no gate, whatever is in force.
    if (job.settled) continue;
    const flow::FlowJob* known = flow.Find(job.id);
    const bool takes_part =
        job.phase == Phase::kParked || job.phase == Phase::kRunning || job.phase == Phase::kEvicted;
    if (!takes_part || known == nullptr || !known->published.has_value()) return std::nullopt;
    const flow::Published& published = *known->published;
    key.push_back({job.id, published.profile.period, published.plan.peak_units});
  }
  if (key.size() < 2) return std::nullopt;
  std::sort(key.begin(), key.end(),
            [](const KnownJob& a, const KnownJob& b) { return a.id < b.id; });
  return key;
}

bool Tuner::Same(const Key& a, const Key& b) {
  return std::equal(
      a.begin(), a.end(), b.begin(), b.end(), [](const KnownJob& x, const KnownJob& y) {
        const flow::Units differ = std::max(x.peak, y.peak) - std::min(x.peak, y.peak);
        return x.id == y.id && x.period == y.period && differ <= x.peak / 8;
      });
}

std::optional<std::string> Tuner::Look(flow::Flow* flow, uint64_t now_ns) {
  const std::optional<Key> key = KeyOf(*flow);
  if (!key.has_value()) {
    interrupted_ = true;
    return std::nullopt;
  }
  const bool outgrown = Outgrown(*flow);
  if (!Same(*key, key_) || outgrown) {
    soft_budgets_ = !outgrown;
    BeginAnew(*key, *flow, now_ns);
    const auto before = std::find_if(chosen_.begin(), chosen_.end(),
                                     [this](const Choice& one) { return Same(one.key, key_); });
    if (before == chosen_.end()) return std::nullopt;
    state_ = State::kChosen;
    candidates_ = before->candidates;
    BeginWatch(before->way);
    return PutInForce(before->way, flow, now_ns);
  }
  // A soft budget goes with a profile, and when anybody comes or goes.
  const bool lost = wanted_.has_value() && flow->way() != *wanted_;
  if (std::exchange(interrupted_, false) || lost) {
    if (trials_.has_value()) trials_->Restart();
  }
  if (lost) return PutInForce(*wanted_, flow, now_ns);
  if (state_ == State::kWaiting && ReadyToSearch(*flow, now_ns)) {
    state_ = State::kSearching;
    searcher_->Begin(TaskFor(*flow));
  }
  if (state_ == State::kSearching) {
    const std::optional<SearchResult> found = searcher_->Take();
    if (found.has_value()) Judge(*found, *flow);
  }
  if (state_ == State::kChosen) return Watch(*flow, now_ns);
  if (state_ != State::kMeasuring) return std::nullopt;
  const bool changes = trials_->Observe(ProgressOf(*flow), static_cast<double>(now_ns));
  const Way& way = candidates_[trials_->current()].way;
  if (trials_->done()) return Choose(way, flow, now_ns);
  return changes ? PutInForce(way, flow, now_ns) : std::nullopt;
}

void Tuner::BeginAnew(const Key& key, const flow::Flow& flow, uint64_t now_ns) {
  searcher_->Drop();
  key_ = key;
  interrupted_ = false;
  since_ns_ = now_ns;
  state_ = State::kWaiting;
  candidates_.clear();
  trials_.reset();
  watched_iterations_ = options_.watched_iterations;
  look_iterations_ = options_.trials.iterations;
  wanted_.reset();
  ended_before_.clear();
  for (const KnownJob& job : key_) ended_before_[job.id] = flow.Find(job.id)->times.ended();
}

/// One of these jobs claims more than fitted in the soft budget: whatever was found for them is
/// measured anew, without one.
bool Tuner::Outgrown(const flow::Flow& flow) {
  if (outgrown_ == flow.soft_budgets_outgrown()) return false;
  outgrown_ = flow.soft_budgets_outgrown();
  std::erase_if(chosen_, [this](const Choice& one) { return Same(one.key, key_); });
  return true;
}

/// The model's budget, with as much room above what the jobs claim as a claim has above what was
/// used. None where that is all that is lent.
Way Tuner::WayOf(const simulate::Setting& setting, const flow::Flow& flow) const {
  Way way{setting.policy.policy, setting.policy.lanes, setting.claims};
  way.credit_parts = static_cast<uint32_t>(std::lround(setting.credit_parts));
  way.residents = setting.policy.residents;
  if (way.residents != 0) way.slice_ns = setting.policy.slice_ns;
  if (setting.policy.soft_budget == 0) return way;
  const flow::Units least = flow.LeastSoftBudget();
  const flow::Units budget = std::max(setting.policy.soft_budget + KeptByOthers(flow),
                                      scheduler::WithClaimMargin(least, 0));
  if (budget < flow.wanted_budget()) way.soft_budget = budget;
  return way;
}

bool Tuner::ReadyToSearch(const flow::Flow& flow, uint64_t now_ns) const {
  if (now_ns - since_ns_ < options_.same_for_ns) return false;
  return std::all_of(key_.begin(), key_.end(), [&](const KnownJob& job) {
    return flow.Find(job.id)->times.ended() >= ended_before_.at(job.id) + options_.least_iterations;
  });
}

SearchTask Tuner::TaskFor(const flow::Flow& flow) const {
  SearchTask task;
  task.options.unit_bytes = flow.options().unit_bytes;
  task.options.pool_units = flow.wanted_budget() - KeptByOthers(flow);
  task.soft_budgets = options_.soft_budgets && soft_budgets_;
  task.credits = flow.options().credit && flow.options().credit_ns == 0;
  task.options.claim_margin = true;
  task.options.gate_ns = 0;  // what is measured by the clock has them in it
  if (flow.EverybodyInsured()) task.claims = options_.most_claims;
  if (flow.EverybodyInsured()) task.options.host.units = options_.host_units;
  for (const KnownJob& known : key_) {
    const flow::FlowJob& job = *flow.Find(known.id);
    const scheduler::Job& holder = *flow.ledger().Find(known.id);
    Result<simulate::Workload> made = simulate::LiveWorkload(
        job.spec.name, job.published->profile, job.published->plan, task.options.unit_bytes,
        static_cast<double>(job.times.shortest_ns()));
    if (!made.ok()) continue;
    made->limit = holder.limit - holder.outside;
    task.jobs.push_back(*std::move(made));
  }
  WithinPool(&task.jobs, task.options.pool_units, task.options.unit_bytes);
  return task;
}

/// Whatever the model says, taking turns is among what is measured: where sharing loses it wins,
/// and where it gains nothing, as nothing that is lent can be missed then.
void Tuner::Judge(const SearchResult& found, const flow::Flow& flow) {
  candidates_ = {{flow.way()}};
  const auto add = [this](const Way& way, double predicted) {
    for (Candidate& known : candidates_) {
      if (known.way == way) {
        known.predicted = predicted;
        return;
      }
    }
    if (candidates_.size() < options_.most_ways) candidates_.push_back({way, predicted});
  };
  add(Turns(), found.ok() ? 1 : 0);
  if (found.ok()) {
    for (const simulate::Tried& tried : found->finalists) {
      add(WayOf(tried.setting, flow), tried.throughput / found->temporal);
    }
  }
  BeginTrials();
}

/// The way in force is the first of the candidates.
void Tuner::BeginTrials() {
  const auto turns = std::find_if(candidates_.begin(), candidates_.end(),
                                  [](const Candidate& one) { return one.way == Turns(); });
  scheduler::TrialOptions options = options_.trials;
  options.iterations = look_iterations_;
  trials_.emplace(candidates_.size(), options, static_cast<size_t>(turns - candidates_.begin()));
  for (size_t i = 0; i < candidates_.size(); ++i) LookOverSlices(i, candidates_[i].way);
  state_ = State::kMeasuring;
}

/// Each base is away once.
void Tuner::LookOverSlices(size_t candidate, const Way& way) {
  if (way.residents == 0) return;
  trials_->LastsAtLeast(candidate, static_cast<double>(way.slice_ns * key_.size()));
}

void Tuner::BeginWatch(const Way& way) {
  scheduler::TrialOptions options = options_.trials;
  options.rounds = 1;
  options.iterations = watched_iterations_;
  trials_.emplace(1, options);
  LookOverSlices(0, way);
}

/// What four iterations told may have been chance, and memory scatters in the course of many.
std::optional<std::string> Tuner::Watch(const flow::Flow& flow, uint64_t now_ns) {
  trials_->Observe(ProgressOf(flow), static_cast<double>(now_ns));
  if (!trials_->done()) return std::nullopt;
  if (trials_->cut_short()) {
    BeginWatch(*wanted_);
    return std::nullopt;
  }
  const double gets_done = trials_->Rate(0) * (1 + options_.trials.least_gain);
  const auto in_force = std::find_if(candidates_.begin(), candidates_.end(),
                                     [this](const Candidate& one) { return one.way == wanted_; });
  const bool beaten = std::any_of(
      candidates_.begin(), candidates_.end(),
      [&](const Candidate& one) { return one.way != wanted_ && one.measured > gets_done; });
  if (!beaten || in_force == candidates_.end()) {
    BeginWatch(*wanted_);
    return std::nullopt;
  }
  std::rotate(candidates_.begin(), in_force, in_force + 1);
  watched_iterations_ *= 2;
  look_iterations_ *= 2;
  BeginTrials();
  return "auto: measures again, as " + WayText(*wanted_, flow.options().unit_bytes) +
         " gets less done than another way did";
}

std::vector<scheduler::Progress> Tuner::ProgressOf(const flow::Flow& flow) const {
  std::vector<scheduler::Progress> progress;
  for (const KnownJob& known : key_) {
    const flow::FlowJob& job = *flow.Find(known.id);
    progress.push_back({known.id, job.times.ended(), static_cast<double>(job.times.last_end_ns()),
                        static_cast<double>(job.published->profile.iteration_ns)});
  }
  return progress;
}

std::optional<std::string> Tuner::PutInForce(const Way& way, flow::Flow* flow, uint64_t now_ns) {
  wanted_ = way;
  if (flow->way() == way) return std::nullopt;
  // Only `spatial` can be refused, and no search names it.
  (void)flow->SetWay(way, now_ns).ok();
  return "auto: " + WayText(way, flow->options().unit_bytes) + " from now on";
}

/// By value: it may be one of the candidates', which change.
std::string Tuner::Choose(Way way, flow::Flow* flow, uint64_t now_ns) {
  candidates_ = candidates();
  state_ = State::kChosen;
  std::erase_if(chosen_, [this](const Choice& one) { return Same(one.key, key_); });
  if (chosen_.size() >= kRemembered) chosen_.erase(chosen_.begin());
  chosen_.push_back({key_, way, candidates_});
  BeginWatch(way);
  (void)PutInForce(way, flow, now_ns);
  return "auto: stays with " + WayText(way, flow->options().unit_bytes) + " for these " +
         std::to_string(key_.size()) + " jobs";
}

std::vector<Tuner::Candidate> Tuner::candidates() const {
  std::vector<Candidate> all = candidates_;
  if (state_ != State::kMeasuring) return all;
  for (size_t i = 0; i < all.size(); ++i) {
    if (const double rate = trials_->Rate(i); rate > 0) all[i].measured = rate;
  }
  return all;
}

}  // namespace sluice::tuner
