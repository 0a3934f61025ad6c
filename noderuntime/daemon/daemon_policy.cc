// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// Which policy decides, the search for a better one while jobs run, and how much of the pool is
// lent.

#include "common/bytes.h"
#include "common/log/log.h"
#include "noderuntime/daemon/daemon.h"
#include "scheduler/policy/policies.h"

namespace sluice::noded {

/// `auto` begins with what is best for most jobs, and goes on from there.
scheduler::Config Daemon::PolicyToBeginWith(const config::Options& options) {
  scheduler::Config config;
  if (options.policy == scheduler::kAutoPolicy) return config;
  config.policy = options.policy;
  config.lanes = options.lanes;
  config.residents = config::ResidentsOf(options);
  config.slice_ns = static_cast<uint64_t>(options.slice_s * 1e9);
  return config;
}

Status Daemon::SetPolicy(ControlClient* client, const session::SetPolicyFrame& wanted) {
  config::Options options = options_;
  options.policy = wanted.policy;
  if (wanted.lanes != 0) options.lanes = wanted.lanes;
  Status valid = config::Validate(options);
  if (valid.ok()) {
    const scheduler::Config begin = PolicyToBeginWith(options);
    flow::Way way{begin.policy, begin.lanes, *scheduler::FindClaims(options.claims)};
    way.residents = begin.residents;
    way.slice_ns = begin.slice_ns;
    valid = flow_->SetWay(way, NowNs());
  }
  if (valid.ok()) {
    options_ = options;
    policy_was_set_ = registry_changed_ = true;
    StartOrStopTuner();
    SayOfLaunchers(logging::Level::kInfo, "policy " + options_.policy + " from now on");
  }
  protocol::PolicySet answer = {};
  answer.header = session::MakeHeader(protocol::FrameType::kPolicySet, sizeof answer, wanted.seq);
  answer.status = valid.ok() ? 0 : 1;
  answer.lanes = options_.lanes;
  session::CopyText(valid.ok() ? options_.policy : valid.message(), answer.text);
  return AnswerOrder(client, answer);
}

Status Daemon::SetBudget(ControlClient* client, const protocol::SetBudget& wanted) {
  const uint64_t unit = options_.unit_bytes;
  const uint64_t asked = wanted.bytes == 0 ? pool_.bytes() : wanted.bytes;
  // In whole units, and never more than was said.
  const auto units = static_cast<flow::Units>(std::min(asked, pool_.bytes() + unit) / unit);
  const Status set = flow_->SetBudget(units, NowNs());
  if (set.ok()) {
    StartOrStopTuner();  // what was best in another one may not be
    SayOfLaunchers(logging::Level::kInfo, "budget " + FormatBytes(units * unit) + " was asked for");
  }
  protocol::BudgetSet answer = {};
  answer.header =
      session::MakeHeader(protocol::FrameType::kBudgetSet, sizeof answer, wanted.header.seq);
  answer.status = set.ok() ? 0 : 1;
  answer.bytes = flow_->wanted_budget() * unit;
  answer.in_force = flow_->budget() * unit;
  session::CopyText(set.message(), answer.text);
  return AnswerOrder(client, answer);
}

/// What the last daemon was told while it ran stands above the command line of this one.
void Daemon::KeepPolicy(const KeptState& state) {
  config::Options options = options_;
  options.policy = state.policy;
  options.lanes = state.lanes;
  if (state.policy.empty() || !config::Validate(options).ok()) return;
  options_ = options;
  policy_was_set_ = true;
}

void Daemon::StartOrStopTuner() {
  tuner_.reset();
  searcher_.reset();
  if (options_.policy != scheduler::kAutoPolicy) return;
  tuner::TunerOptions options;
  // Who was told to keep to contracts has no host memory to spare, or wants to know why.
  if (options_.claims == "contract") options.most_claims = scheduler::Claims::kContract;
  if (options_.residents == config::kAutoResidents) {
    options.host_units = static_cast<flow::Units>(
        std::min<uint64_t>(host_tier_.capacity_bytes() / options_.unit_bytes, UINT32_MAX));
  }
  searcher_ = std::make_unique<tuner::SearchThread>();
  tuner_ = std::make_unique<tuner::Tuner>(options, searcher_.get());
}

void Daemon::LookForBetter(uint64_t now_ns) {
  if (tuner_ == nullptr || flow_->frozen()) return;
  if (const auto news = tuner_->Look(flow_.get(), now_ns)) logging::Info("{}", *news);
}

}  // namespace sluice::noded
