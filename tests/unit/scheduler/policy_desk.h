// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "scheduler/policy/policy.h"

namespace sluice::scheduler {

/// A ledger with its waiting requests, driven as the daemon drives them: after each change
/// everything that can be decided is. Records what happened, in the log's schema and in words.
struct Desk {
  explicit Desk(Units pool, Config c = {}) : ledger(pool, 1 << 20), config(std::move(c)) {
    Record first;
    first.units = pool;
    first.unit_bytes = 1 << 20;
    first.policy = config.policy;
    records.push_back(first);
  }

  void Ok(const Status& status) { ASSERT_TRUE(status.ok()) << status.message(); }

  void Parked(JobId id, const std::string& name, Units request, Units limit, Extent base) {
    Admit(id, name, request, limit);
    Ok(ledger.StartUnprofiled(id));
    Ok(ledger.Grant(id, {base}));
    Ok(ledger.ReachTrough(id, true));
    Write(EventKind::kGate, id, [&](Record& r) {
      r.claim = limit;
      r.extents = {base};
    });
    Write(EventKind::kTrough, id, [](Record& r) { r.drained = true; });
  }

  void Gate0(JobId id, Units claim, Units units = 0, bool returns = true) {
    Request request;
    request.kind = RequestKind::kGate0;
    request.units = request.contiguous = units;
    request.claim = claim;
    request.returns = returns;
    Ask(id, request);
  }
  void Newcomer(JobId id) {
    Request request;
    request.kind = RequestKind::kNewcomer;
    Ask(id, request);
  }
  void Lease(JobId id, Units units, Units contiguous = 1) {
    Request request;
    request.units = units;
    request.contiguous = contiguous;
    Ask(id, request);
  }
  /// At a gate behind which it will not need so much of its claim any more.
  void GateWaiving(JobId id, Units units, Units waives) {
    Request request;
    request.kind = RequestKind::kGate;
    request.gate = 1;
    request.units = units;
    request.contiguous = std::min<Units>(units, 1);
    request.waives = waives;
    Ask(id, request);
  }
  void Ask(JobId id, Request request) {
    request.job = id;
    request.ticket = next_ticket++;
    waiting.push_back(request);
    Decide();
  }
  void Release(JobId id, const Extents& extents) {
    Ok(ledger.Release(id, extents, next_release));
    Write(EventKind::kRelease, id, [&](Record& r) {
      r.extents = extents;
      r.release = next_release;
    });
    Ok(ledger.Fenced(id, next_release));
    Write(EventKind::kFenced, id, [&](Record& r) { r.release = next_release; });
    ++next_release;
    Decide();
  }
  /// Gives back all but its base and parks.
  void Trough(JobId id) {
    Park(id);
    Decide();
  }
  /// The same, and wants to go on at once.
  void Again(JobId id, Units claim, Units units) {
    Park(id);
    Gate0(id, claim, units);
  }
  void Park(JobId id) {
    const Extents rest = Subtract(ledger.map().Held(id, UnitState::kLeased), ledger.Find(id)->base);
    if (!rest.empty()) {
      Ok(ledger.Release(id, rest, next_release));
      Write(EventKind::kRelease, id, [&](Record& r) {
        r.extents = rest;
        r.release = next_release;
      });
      Ok(ledger.Fenced(id, next_release));
      Write(EventKind::kFenced, id, [&](Record& r) { r.release = next_release; });
      ++next_release;
    }
    Ok(ledger.ReachTrough(id, true));
    Write(EventKind::kTrough, id, [](Record& r) { r.drained = true; });
  }
  void LoseProfile(JobId id) {
    Ok(ledger.LoseProfile(id));
    Write(EventKind::kMismatch, id, [](Record&) {});
    Decide();
  }
  void Admit(JobId id, const std::string& name, Units request, Units limit) {
    Ok(ledger.Admit(id, name, request, limit));
    Write(EventKind::kAdmit, id, [&](Record& r) {
      r.name = name;
      r.request = request;
      r.limit = limit;
    });
  }
  void Die(JobId id) {
    Ok(ledger.Die(id));
    std::erase_if(waiting, [id](const Request& request) { return request.job == id; });
    Write(EventKind::kDeath, id, [](Record&) {});
    Decide();
  }
  void Gone(JobId id) {
    Ok(ledger.LastHolderGone(id));
    Write(EventKind::kFree, id, [](Record&) {});
    Decide();
  }

  void Decide() {
    for (int i = 0; i < 1000; ++i) {
      const auto decision = Next(ledger, waiting, config);
      if (!decision) {
        EXPECT_TRUE(ledger.CheckInvariants().ok()) << ledger.CheckInvariants().message();
        return;
      }
      for (Record record : RecordsOf(*decision, waiting, ledger)) {
        record.t_ns = ++now;
        records.push_back(std::move(record));
      }
      CountOvertaken(*decision, &waiting);
      const Status status = Apply(*decision, waiting, &ledger);
      ASSERT_TRUE(status.ok()) << status.message();
      if (decision->kind == Decision::Kind::kReclaim) continue;
      last = *decision;
      if (decision->kind == Decision::Kind::kEvict) {
        waiting[decision->request].insurance = Insurance::kLeaving;
        leaving.push_back(decision->job);
        continue;
      }
      if (waiting[decision->request].kind == RequestKind::kBringBack) {
        waiting[decision->request].kind = RequestKind::kLease;
        continue;
      }
      if (waiting[decision->request].kind == RequestKind::kSwapIn) {
        BackAtItsTrough(&waiting[decision->request]);
        continue;
      }
      if (decision->kind == Decision::Kind::kDeny) denied.push_back(decision->job);
      waiting.erase(waiting.begin() + static_cast<std::ptrdiff_t>(decision->request));
    }
    FAIL() << "the policy never comes to rest";
  }

  /// It has got these, whatever a policy would say.
  void Hold(JobId id, const Extents& extents) {
    Ok(ledger.Grant(id, extents));
    Write(EventKind::kGrant, id, [&](Record& r) {
      r.extents = extents;
      r.claim = ledger.Find(id)->terms.claim;
    });
  }
  /// A lease of a job that host memory has room for.
  void InsuredLease(JobId id, Units units, Units contiguous = 1) {
    Request request;
    request.units = units;
    request.contiguous = contiguous;
    request.insurance = Insurance::kEvictable;
    Write(EventKind::kWait, id, [&](Record& r) {
      r.units = units;
      r.contiguous = contiguous;
    });
    Ask(id, request);
  }
  /// At its gate 0, where host memory has room for its base.
  void InsuredGate0(JobId id, Units claim, Units units = 0, int32_t priority = 0) {
    Request request;
    request.kind = RequestKind::kGate0;
    request.units = request.contiguous = units;
    request.claim = claim;
    request.priority = priority;
    request.insurance = Insurance::kEvictable;
    Ask(id, request);
  }
  /// What a leaving job has is in host memory now.
  void Copied(JobId id) {
    Ok(ledger.Evict(id));
    Write(EventKind::kEvict, id, [&](Record& r) { r.extents = ledger.Find(id)->away; });
    const bool by_turns = ledger.Find(id)->away_from == Phase::kParked;
    for (Request& request : waiting) {
      if (request.job != id) continue;
      request.kind = by_turns ? RequestKind::kSwapIn : RequestKind::kBringBack;
      request.insurance = Insurance::kNone;
      request.overtaken = 0;
    }
    Decide();
  }
  /// It has been in host memory for its slice.
  void Due(JobId id) {
    for (Request& request : waiting) request.due |= request.job == id;
    Decide();
  }
  /// It waits for its turn as before, and may go again when it has had one.
  void BackAtItsTrough(Request* request) {
    request->kind = RequestKind::kGate0;
    request->insurance = Insurance::kEvictable;
    request->overtaken = 0;
    request->due = false;
    returned.push_back(request->job);
  }

  bool Waits(JobId id) const {
    return std::any_of(waiting.begin(), waiting.end(),
                       [id](const Request& r) { return r.job == id; });
  }
  bool Leaves(JobId id) const {
    return std::any_of(waiting.begin(), waiting.end(), [id](const Request& r) {
      return r.job == id && r.insurance == Insurance::kLeaving;
    });
  }
  bool Away(JobId id) const { return ledger.Find(id)->phase == Phase::kEvicted; }
  bool PastGate(JobId id) const { return ledger.Find(id)->past_gate(); }
  Extents Held(JobId id) const { return ledger.map().Held(id); }

  template <typename Fill>
  void Write(EventKind kind, JobId id, Fill fill) {
    Record record;
    record.event = kind;
    record.job = id;
    record.t_ns = ++now;
    fill(record);
    records.push_back(std::move(record));
  }

  Ledger ledger;
  Config config;
  std::vector<Request> waiting;
  std::vector<Record> records;
  std::vector<JobId> denied;
  std::vector<JobId> leaving;   // every job that was ever told to make room
  std::vector<JobId> returned;  // every one that came back to its trough
  Decision last;
  uint64_t next_ticket = 1;
  ReleaseId next_release = 1;
  uint64_t now = 0;
};

}  // namespace sluice::scheduler
