// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "bench/decide_live.h"

#include <algorithm>
#include <cmath>

namespace sluice::bench {

using scheduler::Decision;
using scheduler::JobId;
using scheduler::Request;
using scheduler::RequestKind;
using scheduler::Units;

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr double kIterationNs = 100e6;  // of GPU time, alone
constexpr double kCreditNs = 5e6;       // that a host is ahead of its GPU
constexpr double kPauseNs = 5e5;        // no closer looks than a node takes at what was put off
/// Until all of the pool is counted on, and what is expected has followed what is measured.
constexpr uint32_t kKnownAfter = 6;

}  // namespace

LiveNode::LiveNode(const LiveShape& shape)
    : pool_(DecideShape{}, 3), gates_(shape.gates), lanes_(pool_.jobs) {
  // Where memory lies is for the other states: here it is the policy that is asked.
  pool_.piece = 1;
  config_.policy = shape.policy;
  config_.lanes = shape.lanes;
  scheduler::CyclePlan plan;
  plan.peak_units = pool_.peak;
  plan.piece_units = pool_.piece;
  plan.credit_ns = static_cast<uint64_t>(kCreditNs);
  std::vector<double> gate_ns;
  for (uint32_t k = 0; k < gates_; ++k) {
    plan.gates.push_back({k, NeedAt(k), pool_.piece});
    gate_ns.push_back(kIterationNs * k / gates_);
  }
  for (JobId job = 1; job <= pool_.jobs; ++job) {
    courses_[job] = scheduler::Course(plan, gate_ns, kIterationNs, pool_.base);
    lanes_[job - 1].host_ns = kIterationNs * job / 10;
  }
  Play(kKnownAfter * pool_.jobs);
}

Answers LiveNode::Play(uint32_t iterations) {
  Answers answers;
  const auto outlook = [&] { return scheduler::Outlook{now_ns_, &courses_}; };
  scheduler::AskAgain again;
  Run(
      iterations,
      [&] {
        again = {kPauseNs};
        return answers.next.emplace_back(
            scheduler::Next(pool_.ledger, pool_.waiting, config_, outlook(), &again));
      },
      [&] { return answers.again_in.emplace_back(again.in); });
  return answers;
}

void LiveNode::Replay(uint32_t iterations, const Answers& answers) {
  predicts_ = false;
  size_t next = 0;
  size_t again = 0;
  Run(
      iterations, [&] { return answers.next.at(next++); },
      [&] { return answers.again_in.at(again++); });
}

template <typename Next, typename Again>
void LiveNode::Run(uint32_t iterations, const Next& next, const Again& again) {
  for (const uint32_t last = ended_ + iterations; ended_ < last;) {
    Step();
    while (const std::optional<Decision> decision = next()) {
      const bool denies = decision->kind == Decision::Kind::kDeny;
      if (denies) Must(Status(StatusCode::kInternal, decision->reason));
      if (const auto answered = pool_.Make(*decision)) Granted(*answered);
    }
    const double in = again();
    again_ns_ = std::isfinite(in) ? now_ns_ + std::max(in, kPauseNs) : kNever;
  }
}

/// Up to the peak and down again.
Units LiveNode::NeedAt(size_t gate) const {
  const auto height = static_cast<Units>(std::min<size_t>(gate + 1, gates_ - gate));
  return pool_.base + (pool_.peak - pool_.base) * height / ((gates_ + 1) / 2);
}

scheduler::Course* LiveNode::CourseOf(JobId job) { return predicts_ ? &courses_.at(job) : nullptr; }

void LiveNode::Step() {
  double least = again_ns_;
  JobId job = 0;
  bool host = false;
  for (JobId id = 1; id <= pool_.jobs; ++id) {
    const Lane& lane = lanes_[id - 1];
    const double gpu_ns = lane.reaches.empty() ? kNever : lane.reaches.front().at_ns;
    const double first = std::min(lane.host_ns, gpu_ns);
    if (first >= least) continue;
    least = first;
    job = id;
    host = lane.host_ns < gpu_ns;
  }
  if (least == kNever) Must(Status(StatusCode::kInternal, "nothing moves any more"));
  now_ns_ = std::max(now_ns_, least);
  again_ns_ = kNever;
  if (job != 0) host ? AtHost(job) : AtGpu(job);
}

void LiveNode::AtHost(JobId job) {
  Lane& lane = lanes_[job - 1];
  lane.host_ns = kNever;
  const size_t gate = lane.gate ? *lane.gate + 1 : 0;
  if (gate == gates_) {
    if (const auto release = pool_.ReleaseTo(job, pool_.base, DecidePool::From::kMiddle)) {
      Must(pool_.ledger.Fenced(job, *release));
    }
    Must(pool_.ledger.ReachTrough(job, true));
    if (auto* course = CourseOf(job)) course->End(now_ns_);
    lane.gate.reset();
    lane.host_ns = now_ns_ + kIterationNs / 100;
    ++ended_;
    return;
  }
  const Units need = NeedAt(gate);
  if (gate > 0)
    lane.reaches.push_back(
        {lane.gpu_ns, gate, pool_.ReleaseTo(job, need, DecidePool::From::kMiddle)});
  pool_.Ask(job, gate == 0 ? RequestKind::kGate0 : RequestKind::kGate, static_cast<uint32_t>(gate),
            need);
  // By its curve.
  const Units ahead = gate < gates_ / 2 ? pool_.peak : need;
  pool_.waiting.back().waives = pool_.peak - ahead;
}

void LiveNode::AtGpu(JobId job) {
  const Lane::Reach reach = lanes_[job - 1].reaches.front();
  lanes_[job - 1].reaches.pop_front();
  if (reach.release) Must(pool_.ledger.Fenced(job, *reach.release));
  if (auto* course = CourseOf(job)) course->Reach(static_cast<uint32_t>(reach.gate), now_ns_);
}

void LiveNode::Granted(const Request& request) {
  Lane& lane = lanes_[request.job - 1];
  lane.gate = request.gate;
  if (auto* course = CourseOf(request.job)) {
    if (request.gate == 0) course->Open(now_ns_);
    course->Pass(request.gate, now_ns_);
  }
  // The GPU is shared by those who are inside, and never quite as it was.
  const auto inside = static_cast<double>(
      std::count_if(lanes_.begin(), lanes_.end(), [](const Lane& one) { return one.gate; }));
  const double part = 0.9 + 0.2 * static_cast<double>(random_()) / std::mt19937::max();
  const double ns = kIterationNs / gates_ * inside * part;
  lane.gpu_ns = std::max(now_ns_, lane.gpu_ns) + ns;
  const bool last = request.gate + 1 == gates_;
  lane.host_ns = last ? lane.gpu_ns : std::max(now_ns_ + ns / 8, lane.gpu_ns - kCreditNs);
}

}  // namespace sluice::bench
