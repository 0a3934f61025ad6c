// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "bench/decide_pool.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "scheduler/policy/operations.h"

namespace sluice::bench {

using scheduler::Decision;
using scheduler::Extents;
using scheduler::JobId;
using scheduler::ReleaseId;
using scheduler::Request;
using scheduler::RequestKind;
using scheduler::Units;

void Must(const Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "sluice_bench: %s\n", status.message().c_str());
  std::abort();
}

DecidePool::DecidePool(const DecideShape& shape, Units eighths)
    : jobs(shape.jobs), ledger(shape.pool_units, uint64_t{8} << 20) {
  const uint32_t each = std::max(1u, shape.pieces / jobs);
  const Units length = std::max(1u, shape.pool_units / 4 / (each * jobs));
  base = each * length;
  piece = std::max(2u, shape.pool_units / 64);
  peak = base + (shape.pool_units - base * jobs) * eighths / 8;
  for (JobId job = 1; job <= jobs; ++job) {
    Extents pieces;
    for (uint32_t k = 0; k < each; ++k) pieces.push_back({(k * jobs + job - 1) * length, length});
    Must(ledger.Admit(job, "job", base, peak));
    Must(ledger.StartUnprofiled(job));
    Must(ledger.Grant(job, pieces));
    Must(ledger.ReachTrough(job, true));
  }
}

bool DecidePool::Waits(JobId job) const {
  return std::any_of(waiting.begin(), waiting.end(),
                     [job](const Request& request) { return request.job == job; });
}

void DecidePool::Ask(JobId job, RequestKind kind, uint32_t gate, Units need) {
  Request request;
  request.job = job;
  request.kind = kind;
  request.gate = gate;
  request.units = need - std::min(need, ledger.Find(job)->leased);
  request.contiguous = std::min(request.units, piece);
  request.claim = peak;
  request.piece = piece;
  request.ticket = next_ticket++;
  waiting.push_back(request);
}

std::optional<ReleaseId> DecidePool::ReleaseTo(JobId job, Units keep, From from) {
  const scheduler::Job& known = *ledger.Find(job);
  Extents loose = Subtract(ledger.map().Held(job, scheduler::UnitState::kLeased), known.base);
  const bool low = from == From::kMiddle && known.terms.end == scheduler::End::kLow;
  if (low) std::reverse(loose.begin(), loose.end());
  Units surplus = known.leased - std::min(keep, known.leased);
  Extents released;
  for (const scheduler::Extent& extent : loose) {
    const Units length = std::min(surplus, extent.length);
    if (length > 0) released.push_back({low ? extent.end() - length : extent.offset, length});
    surplus -= length;
  }
  released = Merge(std::move(released));
  if (released.empty()) return std::nullopt;
  Must(ledger.Release(job, released, next_release));
  return next_release++;
}

std::optional<Request> DecidePool::Make(const Decision& decision) {
  Must(scheduler::MakeOperations(decision, waiting, &ledger));
  if (decision.kind == Decision::Kind::kReclaim) return std::nullopt;
  CountOvertaken(decision, &waiting);
  const Request answered = waiting[decision.request];
  waiting.erase(waiting.begin() + static_cast<std::ptrdiff_t>(decision.request));
  return answered;
}

}  // namespace sluice::bench
