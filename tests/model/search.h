// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "scheduler/ledger/ledger.h"
#include "scheduler/policy/policy.h"

/// Exhaustive search over everything that a few clients can do to the real ledger, safety test and
/// policy.
///
/// Assumptions, and nothing else: fences complete; a client that is not blocked reaches its trough
/// or dies; a blocked client frees nothing; the last holder of a dead client's memory goes some
/// day, unless `holders_stay`. Demand is chosen by an adversary inside each client's claim (beyond
/// it for a client that deviates).
namespace sluice::scheduler::model {

struct ClientModel {
  Units request = 1;
  Units limit = 3;
  Units claim = 3;
  Units piece = kWholeClaim;
  Extents base;             // what it holds at its trough; ignored for a newcomer
  bool returns = true;      // it saw the pressure before its gate opened (GateTerms::returns)
  bool newcomer = false;    // arrives during the run and begins without a profile
  bool grows = false;       // deviates: asks for more than its claim, up to its limit
  bool insured = false;     // then: may be evicted instead of denied
  bool swaps = false;       // its base may be in host memory while it waits for its gate 0
  bool mismatches = false;  // deviates: may lose its profile once in the middle of an iteration
  bool idles = false;       // may compute nothing for a while where it has no profile
  bool collective = false;  // its kernels wait for other GPUs' (Ledger::SetCollective)
  bool drifts = false;  // deviates: may keep a transient unit instead of a base unit at its trough
};

struct ModelConfig {
  std::string name;
  Units pool = 6;
  std::vector<ClientModel> clients;
  Config policy;
  Rules rules;
  int deaths = 1;
  /// The last holder of a dead client's memory may live on for ever: nobody may depend on its end.
  bool holders_stay = false;
  bool notices_holders = true;  // as the daemon does, in time: Ledger::SetLinger
  Units most_asked = 3;         // units in one request, at most
  /// False: whoever would be told out-of-memory because nothing moves waits on instead. Shows what
  /// the rules do without that last resort.
  bool deny_at_rest = true;
  bool ask_at_gate = true;  // gates 0 also come with a first unit
  /// I6: how often a request may be overtaken. Not the policy's own number: a seeded bug raises
  /// that one.
  uint32_t overtakes = 4;
  /// As the daemon does, a gate opens with no larger claim than what can ever be free for it.
  /// False: with all that the client wants.
  bool cut_claims = true;
  /// Walks on from every copy of a state, too, and compares where that leads.
  bool compare_copies = false;
  size_t max_states = 2'000'000;
};

enum class Finding {
  kInvariant,         // I0, I1, I2, I5, h <= C <= L
  kOverBudget,        // a unit is lent while its last holder's GPU work may still touch it
  kUnsafe,            // I3 does not hold although nobody deviated
  kConformingDenied,  // a client inside what it was promised is told out-of-memory
  kNoWayOn,           // a client that can never reach its trough again
  kOvertaken,         // I6: passed by a later one more often than is allowed
  kNotAlone,          // I7: a gate opens while a job without a profile is measured
  kKeptAway,          // I6: others begin iterations for ever while a job is in host memory
  kCopiesDiffer,      // two states that the search takes for one do not behave alike
};

struct SearchResult {
  size_t states = 0;
  size_t edges = 0;
  bool complete = false;
  std::map<Finding, size_t> counts;
  std::map<Finding, std::string> first;  // how to get there
  size_t denials = 0;                    // of any kind
  size_t evictions = 0;                  // told to make room
  size_t sums_only = 0;                  // gates opened without a promise in extents
  size_t lent = 0;        // grants of units that another client released inside its own iteration
  size_t spare_kept = 0;  // states in which a fenced unit stays with its job
  size_t begun_while_away = 0;  // iterations of others, at most, while one job is in host memory
};

const char* FindingName(Finding finding);
SearchResult Search(const ModelConfig& config);

}  // namespace sluice::scheduler::model
