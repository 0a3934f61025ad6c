// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// What a job has that left its claim, to host memory and back.

#include <algorithm>

#include "common/bytes.h"
#include "common/log/log.h"
#include "noderuntime/daemon/daemon.h"

namespace sluice::noded {

bool Daemon::CanMove(flow::JobId job, flow::Units units) {
  const Client* client = SessionOf(job);
  const auto entry = jobs_.find(job);
  if (entry != jobs_.end() && entry->second.terms.has_value() &&
      entry->second.terms->host_memory_bytes.has_value()) {
    // Its own part of what all of them may have to make room for.
    const uint64_t limit = entry->second.limit_bytes;
    const uint64_t own =
        std::min(uint64_t{units} * options_.unit_bytes, limit == 0 ? pool_.bytes() : limit);
    if (own > *entry->second.terms->host_memory_bytes) return false;
  }
  return !stopping_ && client != nullptr &&
         client->session->client_minor() >= protocol::kQuietMinor &&
         host_tier_.HasRoom(uint64_t{units} * options_.unit_bytes) &&
         host_tier_.Where(job) == hosttier::HostTier::Place::kNone;
}

Status Daemon::MoveOut(flow::JobId job, const flow::Extents& extents) {
  // By turns is what it was told to do.
  if (flow_->ledger().Find(job)->past_gate()) {
    SayOfJob(job, logging::Level::kInfo,
             "moves " + FormatBytes(TotalUnits(extents) * options_.unit_bytes) +
                 " to host memory: it needs more than its claim, and others wait");
  }
  if (!has_moved_) {
    // First: a daemon that follows this one has to wait until this one's copies are over.
    has_moved_ = registry_changed_ = true;
    SaveState();
  }
  return host_tier_.Evict(job, extents);
}

Status Daemon::MoveBack(flow::JobId job) { return host_tier_.Restore(job); }

void Daemon::DropMoved(flow::JobId job) { host_tier_.Forget(job); }

void Daemon::EndSession(flow::JobId job, const std::string& reason) {
  if (const Client* client = SessionOf(job)) doomed_.emplace_back(client->session->id(), reason);
}

void Daemon::PollMoves(uint64_t now_ns) {
  for (const auto& ended : host_tier_.Poll()) flow_->OnMoved(ended.job, ended.status, now_ns);
}

}  // namespace sluice::noded
