// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/daemon/job_figures.h"

#include <algorithm>

namespace sluice::noded {

uint64_t LiveBytesOf(const flow::Flow& flow, flow::JobId id) {
  const scheduler::Job* known = flow.ledger().Find(id);
  const flow::FlowJob* job = flow.Find(id);
  if (known == nullptr || job == nullptr) return 0;
  return std::min(job->pages.client->live_bytes.load(), known->held() * flow.options().unit_bytes);
}

uint64_t RunAheadNsOf(const flow::Flow& flow, flow::JobId id) {
  // No GPU is an hour behind.
  constexpr uint64_t kMostNs = 3'600'000'000'000;
  const flow::FlowJob* job = flow.Find(id);
  return job == nullptr ? 0 : std::min(job->pages.client->run_ahead_ns.load(), kMostNs);
}

protocol::Told FiguresOf(const flow::Flow& flow, flow::JobId id, uint64_t limit_bytes, pid_t pid) {
  const uint64_t unit = flow.options().unit_bytes;
  const uint64_t pool = flow.ledger().pool_units() * unit;
  const scheduler::Job* known = flow.ledger().Find(id);
  const flow::FlowJob* job = flow.Find(id);
  protocol::Told told = {};
  told.total_bytes = known != nullptr ? known->limit * unit : limit_bytes / unit * unit;
  if (told.total_bytes == 0) told.total_bytes = pool;
  told.pid = static_cast<uint32_t>(pid);
  if (known == nullptr || job == nullptr) return told;
  told.used_bytes = LiveBytesOf(flow, id);
  if (limit_bytes > 0) {
    const auto context = static_cast<uint32_t>(protocol::Family::kContext);
    told.used_bytes += flow.outside().charged(id) - flow.outside().charged(id, context);
  }
  told.used_bytes = std::min(told.used_bytes, told.total_bytes);
  return told;
}

}  // namespace sluice::noded
