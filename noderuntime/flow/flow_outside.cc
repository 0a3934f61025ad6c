// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// Memory outside the pool: charged before the driver is asked for it, never lent, never waited for.
#include <algorithm>

#include "noderuntime/flow/flow.h"

namespace sluice::flow {

using scheduler::EventKind;
using scheduler::Record;

namespace {

constexpr uint32_t kContextFamily = static_cast<uint32_t>(protocol::Family::kContext);

Status Breach(const std::string& text) { return Status(StatusCode::kInvalidArgument, text); }

bool IsCharged(uint32_t family) {
  return family >= static_cast<uint32_t>(protocol::Family::kArray) && family <= kContextFamily;
}

bool IsCounted(uint32_t family) {
  return family >= static_cast<uint32_t>(protocol::Family::kImported) &&
         family <= static_cast<uint32_t>(protocol::Family::kUnseenLookups);
}

}  // namespace

const char* FamilyName(uint32_t family) {
  switch (static_cast<protocol::Family>(family)) {
    case protocol::Family::kArray:
      return "array";
    case protocol::Family::kManaged:
      return "managed";
    case protocol::Family::kPhysical:
      return "physical";
    case protocol::Family::kPool:
      return "pool";
    case protocol::Family::kGraph:
      return "graph";
    case protocol::Family::kContext:
      return "context";
    case protocol::Family::kImported:
      return "imported";
    case protocol::Family::kHostPinned:
      return "host_pinned";
    case protocol::Family::kHostRegistered:
      return "host_registered";
    case protocol::Family::kUnseenNames:
      return "unseen_functions";
    case protocol::Family::kUnseenLookups:
      return "unseen_lookups";
  }
  return "unknown";
}

/// Between two sessions of one process: what it made outside the pool lives on, and nothing else.
bool Flow::Rests(JobId id) const {
  return Find(id) == nullptr && ledger_.Find(id) == nullptr && outside_.charged(id) > 0;
}

/// How many units of a limit the job's charges take, `more_bytes` included. A limit that nobody
/// gave (0) speaks of the pool alone, and a context is no choice of the job.
Units Flow::OutsideUnits(JobId id, Units limit, uint64_t more_bytes) const {
  if (limit == 0) return 0;
  const uint64_t bytes = outside_.charged(id) - outside_.charged(id, kContextFamily) + more_bytes;
  const uint64_t units = (bytes + options_.unit_bytes - 1) / options_.unit_bytes;
  return static_cast<Units>(std::min<uint64_t>(units, UINT32_MAX));
}

Units Flow::OutsideUnits(JobId id, const FlowJob& job, uint64_t more_bytes) const {
  return OutsideUnits(id, job.spec.limit, more_bytes);
}

void Flow::LogOutside(JobId id, uint32_t family) {
  const scheduler::Job* known = ledger_.Find(id);
  if (known == nullptr) return;
  Record record = RecordFor(EventKind::kOutside, id);
  record.bytes = outside_.charged(id);
  record.units = known->outside;
  record.text = FamilyName(family);
  Log(std::move(record));
}

/// The limit first, then the reserve. Nothing has changed when one of them has no room.
Status Flow::ChargeOutside(JobId id, const FlowJob& job, uint32_t family, uint64_t bytes) {
  if (bytes == 0) return {};
  const std::string title = "job " + std::to_string(id) + " '" + job.spec.name + "'";
  if (bytes > outside_.reserve()) return outside_.Charge(id, title, family, bytes);
  Ledger next = ledger_;
  if (family != kContextFamily) {
    const Units units = OutsideUnits(id, job, bytes);
    if (next.Find(id) != nullptr) {
      if (Status s = next.SetOutside(id, units); !s.ok()) return s;
    } else if (units > job.spec.limit && job.spec.limit > 0) {
      return Status(StatusCode::kResourceExhausted, title + " would have " + ledger_.Bytes(units) +
                                                        " outside the pool, and its limit is " +
                                                        ledger_.Bytes(job.spec.limit));
    }
  }
  if (Status s = outside_.Charge(id, title, family, bytes); !s.ok()) return s;
  ledger_ = std::move(next);
  LogOutside(id, family);
  return {};
}

Status Flow::OnCharge(JobId id, const protocol::Charge& charge, uint64_t now_ns) {
  now_ns_ = now_ns;
  FlowJob* job = Get(id);
  if (job == nullptr) return Breach("Charge from a job that has not begun");
  if (!IsCharged(charge.family)) {
    return Breach("Charge of family " + std::to_string(charge.family) + "; allowed: 1 to " +
                  std::to_string(kContextFamily));
  }
  if (!job->refusal.empty()) {
    sink_->Deny(id, charge.header.seq, protocol::DenyCode::kRefused, job->refusal);
    return {};
  }
  const uint64_t bytes = charge.family == kContextFamily ? options_.context_bytes : charge.bytes;
  if (const Status s = ChargeOutside(id, *job, charge.family, bytes); !s.ok()) {
    LogRefusal(id, scheduler::RefusalReason::kOutside, 0, s.message());
    // Over its limit the job may give something back and ask again; a reserve that is full stays
    // so, whatever it does.
    const bool full = bytes > outside_.reserve() - outside_.charged();
    sink_->Deny(id, charge.header.seq,
                full ? protocol::DenyCode::kExhausted : protocol::DenyCode::kOverLimit,
                s.message());
    return {};
  }
  sink_->Charged(id, charge.header.seq, outside_.charged(id));
  return {};
}

Status Flow::OnUncharge(JobId id, const protocol::Uncharge& uncharge, uint64_t now_ns) {
  now_ns_ = now_ns;
  FlowJob* job = Get(id);
  if (job == nullptr && !Rests(id)) return Breach("Uncharge from a job that has not begun");
  if (!IsCharged(uncharge.family)) {
    return Breach("Uncharge of family " + std::to_string(uncharge.family) + "; allowed: 1 to " +
                  std::to_string(kContextFamily));
  }
  const uint64_t bytes =
      uncharge.family == kContextFamily ? options_.context_bytes : uncharge.bytes;
  if (Status s = outside_.Uncharge(id, uncharge.family, bytes); !s.ok()) return s;
  ++changes_;
  if (ledger_.Find(id) != nullptr)
    (void)Must(id, ledger_.SetOutside(id, OutsideUnits(id, *job, 0)));
  LogOutside(id, uncharge.family);
  Decide();
  return {};
}

Status Flow::OnCount(JobId id, const protocol::Count& count) {
  FlowJob* job = Get(id);
  if (job == nullptr) return Breach("Count from a job that has not begun");
  if (!IsCounted(count.family)) {
    return Breach("Count of family " + std::to_string(count.family) + "; allowed: " +
                  std::to_string(static_cast<uint32_t>(protocol::Family::kImported)) + " to " +
                  std::to_string(static_cast<uint32_t>(protocol::Family::kUnseenLookups)));
  }
  job->counted[count.family] = count.bytes;
  return {};
}

}  // namespace sluice::flow
