// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// The limit of a job that is there: by its pod's terms, or by an operator while it runs. What the
// ledger can promise decides (I0), so that a job is never given a limit that others could keep it
// from reaching, nor one below what it has or needs.

#include "common/bytes.h"
#include "common/log/log.h"
#include "noderuntime/daemon/daemon.h"

namespace sluice::noded {

Status Daemon::SetLimit(ControlClient* client, const protocol::SetLimit& wanted) {
  const auto found = jobs_.find(wanted.job);
  const Status set = found == jobs_.end()
                         ? Status(StatusCode::kNotFound, "job " + std::to_string(wanted.job) +
                                                             ": there is none; allowed: one that "
                                                             "sluice status lists")
                         : OrderLimit(found->first, &found->second, wanted.bytes);
  protocol::LimitSet answer = {};
  answer.header =
      session::MakeHeader(protocol::FrameType::kLimitSet, sizeof answer, wanted.header.seq);
  answer.status = set.ok() ? 0 : 1;
  answer.job = wanted.job;
  answer.bytes = found == jobs_.end() ? 0 : found->second.limit_bytes;
  session::CopyText(set.message(), answer.text);
  return AnswerOrder(client, answer);
}

/// 0 bytes: what its pod asks for.
Status Daemon::OrderLimit(flow::JobId id, JobEntry* job, uint64_t bytes) {
  const bool of_pod = !job->grant.empty();
  if (bytes == 0 && !of_pod) {
    return Status(StatusCode::kInvalidArgument,
                  "limit: this job has no pod that asks for one; allowed: a size");
  }
  if (bytes == 0 && job->terms.has_value() && !job->terms->refusal.empty()) {
    return Status(StatusCode::kFailedPrecondition, "limit: what its pod asks for is refused (" +
                                                       job->terms->refusal + "); allowed: a size");
  }
  // They would overrule it as soon as they are there.
  if (of_pod && options_.terms == "wait" && !job->terms.has_value()) {
    return Status(StatusCode::kUnavailable,
                  "limit: what this job's pod asks for is not known on the node yet; allowed: when "
                  "it is");
  }
  const uint64_t asked = job->terms.has_value() ? job->terms->limit_bytes : job->request_bytes;
  const uint64_t limit = bytes == 0 ? std::max(asked, job->request_bytes) : bytes;
  if (limit < job->request_bytes) {
    return Status(StatusCode::kFailedPrecondition,
                  "limit " + FormatBytes(limit) + ": allowed: " + FormatBytes(job->request_bytes) +
                      " (its request) to " + FormatBytes(pool_.bytes()) + " (the pool)");
  }
  // First for daemons after this one; the plugin keeps room for what this one answers.
  const auto before = of_pod ? grants_->OrderOf(job->grant) : std::nullopt;
  const auto order = bytes == 0 ? std::nullopt : std::optional(LimitOrder{limit, asked});
  Status set = of_pod ? grants_->OrderLimit(job->grant, order) : Status();
  if (!set.ok()) return set.Annotate("limit " + FormatBytes(limit) + " cannot be kept");
  set = ApplyLimit(id, job, limit, job->spec.priority);
  if (!set.ok()) {
    if (of_pod && !grants_->OrderLimit(job->grant, before).ok()) {
      logging::Error("grant {}: its limit order could not be restored", job->grant);
    }
    return set;
  }
  registry_changed_ = true;
  SayOfLaunchers(logging::Level::kInfo,
                 "job " + std::to_string(id) + ": limit " + FormatBytes(limit) + " by an operator");
  AnswerTerms(*job);
  return {};
}

Status Daemon::ApplyLimit(flow::JobId id, JobEntry* job, uint64_t limit_bytes, int32_t priority) {
  session::RegisterFrame wanted;
  wanted.gpu = options_.gpu;
  wanted.name = job->spec.name;
  wanted.observe = job->spec.observed;
  wanted.request_bytes = job->request_bytes;
  wanted.limit_bytes = limit_bytes;
  Result<flow::JobSpec> spec = CheckAmounts(wanted);
  if (!spec.ok()) return spec.status();
  if (Status s = flow_->SetTerms(id, spec->limit, priority); !s.ok()) return s;
  // Not its stitches, which its session has said.
  job->spec.limit = spec->limit;
  job->spec.request = spec->request;
  job->spec.priority = priority;
  job->limit_bytes = limit_bytes;
  return {};
}

}  // namespace sluice::noded
