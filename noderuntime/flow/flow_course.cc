// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// What policies predict with: the course of each job that has a profile, as it was measured alone
// and as it goes beside the others. A client asks at a gate only where it needs more; that it has
// come past the others is seen in its records, and with that what it will not need again.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "noderuntime/flow/flow.h"
#include "scheduler/policy/policies.h"

namespace sluice::flow {

using scheduler::EventKind;
using scheduler::Phase;
using scheduler::Record;

namespace {

constexpr size_t kRecordsPerNote = 4096;

Units BaseUnits(const scheduler::Profile& profile, uint64_t unit_bytes) {
  return static_cast<Units>((profile.base_bytes + unit_bytes - 1) / unit_bytes);
}

}  // namespace

void Flow::LearnCourse(JobId id, FlowJob* job) {
  Published& published = *job->published;
  const scheduler::Profile& profile = published.profile;
  const auto iteration_ns = static_cast<double>(profile.iteration_ns);
  const bool timed = profile.launch_ns.size() >= profile.period;
  std::vector<double> gate_ns;
  for (const scheduler::GatePlan& gate : published.plan.gates) {
    const uint32_t launch = std::min(gate.launch, profile.period);
    // A daemon that takes over does not know each launch; what it measures tells soon enough.
    gate_ns.push_back(
        timed ? std::accumulate(profile.launch_ns.begin(), profile.launch_ns.begin() + launch, 0.0)
              : iteration_ns * launch / std::max(profile.period, 1u));
  }
  const Units base = BaseUnits(profile, options_.unit_bytes);
  courses_[id] = scheduler::Course(published.plan, gate_ns, iteration_ns, base);
  published.ahead = AheadFor(published);
  job->ring.Follow(profile.pacing_stream);
}

std::vector<Units> Flow::AheadFor(const Published& published) const {
  const Units base = BaseUnits(published.profile, options_.unit_bytes);
  return scheduler::AheadOf(published.plan, base, options_.claims, options_.claim_steps);
}

void Flow::SetClaims(scheduler::Claims claims) {
  if (claims == options_.claims) return;
  // Nobody noted where a job held what while contracts were all that counted.
  const bool unnoted = options_.claims == scheduler::Claims::kContract;
  options_.claims = claims;
  for (auto& [id, job] : jobs_) {
    if (unnoted) job.held.Forget();
    if (job.published.has_value()) job.published->ahead = AheadFor(*job.published);
  }
}

/// Somebody waits, and what it is told may depend on how far the others are.
bool Flow::PlacesMatter() const {
  if (requests_.empty()) return false;
  const scheduler::PolicyEntry* policy = scheduler::FindPolicy(options_.policy.policy);
  const bool predicts =
      policy != nullptr && (policy->may_pass != nullptr || policy->opens_in != nullptr);
  return predicts || options_.claims != scheduler::Claims::kContract;
}

/// True: it has come past another gate.
bool Flow::FollowPlace(JobId id, FlowJob* job) {
  const RingReader::Place& place = job->ring.place();
  const scheduler::Job* known = ledger_.Find(id);
  if (!job->published.has_value() || known == nullptr || known->phase != Phase::kRunning ||
      !place.known || place.iteration != job->iteration) {
    return false;
  }
  // The launch that ends a group belongs to it: only the next one proves that the gate is behind.
  const std::vector<scheduler::GatePlan>& gates = job->published->plan.gates;
  const auto beyond = std::lower_bound(
      gates.begin(), gates.end(), place.launches,
      [](const scheduler::GatePlan& gate, uint64_t launches) { return gate.launch < launches; });
  const auto passed = static_cast<uint32_t>(beyond - gates.begin());
  // What it holds there may be of either group.
  const bool at_next = beyond != gates.end() && beyond->launch == place.launches;
  if (passed > 0) job->held.Reach(at_next ? passed : passed - 1, known->held());
  if (passed <= job->passed_gate + 1) return false;
  job->passed_gate = passed - 1;
  if (courses_.at(id).passed() < job->passed_gate) PassGate(id, job->passed_gate);
  Waive(id, *job);
  return true;
}

/// Before what it holds changes: until now it held so much where it is.
void Flow::NotePlace(JobId id, FlowJob* job) {
  if (options_.claims != scheduler::Claims::kContract) ReadRing(id, job, kRecordsPerNote);
}

/// What it will not need again of its claim behind this gate (I5): by its profile, and by what it
/// really held there, with units of its own that lay where it could not use them.
Units Flow::WaivesAt(JobId id, const FlowJob& job, uint32_t gate) const {
  const scheduler::CyclePlan& plan = job.published->plan;
  const Units by_profile = plan.peak_units - job.published->ahead[gate];
  if (by_profile == 0 || !job.pressure || !job.held.known() || !Insured(id)) return 0;
  const Units claim = ledger_.Find(id)->terms.claim;
  return std::min(by_profile, claim - std::min(claim, WithMargin(job.held.From(gate), job)));
}

void Flow::Waive(JobId id, const FlowJob& job) {
  const scheduler::Job& known = *ledger_.Find(id);
  const Units waived = WaivesAt(id, job, job.passed_gate);
  if (waived <= known.terms.waived) return;
  Record record = RecordFor(EventKind::kGrant, id);
  record.gate = job.passed_gate;
  record.claim = known.terms.claim;
  record.waives = waived;
  record.iteration = job.iteration;
  if (Must(id, ledger_.Waive(id, waived))) Log(std::move(record));
}

/// Whoever leaves its curve may have to make room for the others, and so may all of them but one,
/// those too that come to their gates later.
bool Flow::Insured(JobId id) const {
  uint64_t sum = 0;
  Units largest = 0;
  for (const auto& [other, job] : jobs_) {
    const scheduler::Job* known = ledger_.Find(other);
    Units most = std::max(job.spec.limit, job.spec.request);
    if (known != nullptr) {
      const bool parked = known->phase == Phase::kParked;
      most = known->past_gate() ? known->terms.claim : parked ? known->peak : known->limit;
    }
    sum += most;
    largest = std::max(largest, most);
  }
  return sink_->CanMove(id, std::max<Units>(1, static_cast<Units>(sum - largest)));
}

bool Flow::EverybodyInsured() const {
  return std::all_of(jobs_.begin(), jobs_.end(), [this](const auto& entry) {
    return entry.second.moving != Moving::kNot || Insured(entry.first);
  });
}

void Flow::PassGate(JobId id, uint32_t gate) {
  const auto found = courses_.find(id);
  if (found == courses_.end()) return;
  if (gate == 0) found->second.Open(static_cast<double>(now_ns_));
  found->second.Pass(gate, static_cast<double>(now_ns_));
  NoticeFences(id);
}

/// What it has given back at the gates behind it has come back: its GPU has passed them.
void Flow::NoticeFences(JobId id) {
  const auto found = courses_.find(id);
  const FlowJob* job = Find(id);
  if (found == courses_.end() || !job->releases.empty() || !job->published.has_value()) return;
  const uint32_t launch = job->published->plan.gates[found->second.passed()].launch;
  found->second.Reach(launch, static_cast<double>(now_ns_));
}

void Flow::EndCourse(JobId id) {
  const auto found = courses_.find(id);
  if (found != courses_.end()) found->second.End(static_cast<double>(now_ns_));
}

scheduler::Outlook Flow::OutlookNow() const { return {static_cast<double>(now_ns_), &courses_}; }

void Flow::RememberToAsk(double in_ns) {
  // Beside a job that is late the time that is left does not shrink: no closer looks than this.
  again_at_ns_ = std::isfinite(in_ns)
                     ? now_ns_ + static_cast<uint64_t>(std::max(in_ns, kLeastPauseNs)) + 1
                     : 0;
}

}  // namespace sluice::flow
