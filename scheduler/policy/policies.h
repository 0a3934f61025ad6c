// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "scheduler/policy/course.h"
#include "scheduler/policy/forecast.h"
#include "scheduler/policy/policy.h"

/// The registered policies, one file each. A policy says whether one more iteration may begin now,
/// and some whether the next group of one may; I3 is asked in any case, and where nothing moves any
/// more a policy is not asked.
namespace sluice::scheduler {

/// What a policy decides about.
struct Asked {
  const Ledger& ledger;
  const std::vector<Request>& requests;  // all that wait
  const Request& request;                // one of them
  const Config& config;
  const Outlook& outlook;
  Forecast& forecast;  // of the same ledger and outlook
};

struct PolicyEntry {
  std::string_view name;
  std::string_view about;
  /// A parked or waiting job may pass its gate 0.
  bool (*may_open)(const Asked& asked);
  /// A running job may pass a later gate. nullptr: whenever it is safe.
  bool (*may_pass)(const Asked& asked) = nullptr;
  /// Nanoseconds after which may_open says yes although nothing has happened; infinity: never. From
  /// `within` on, any number that is not above it will do.
  /// nullptr: it looks at no clock.
  double (*opens_in)(const Asked& asked, double within) = nullptr;
};

const std::vector<PolicyEntry>& Policies();
const PolicyEntry* FindPolicy(std::string_view name);  // nullptr: unknown
std::vector<std::string> PolicyNames();

/// No policy: one of them is chosen for the jobs that there are (simulate/tune.h, trial/trials.h).
inline constexpr std::string_view kAutoPolicy = "auto";
/// No policy either: nobody waits at a gate, because everybody's limit is reserved. In the model it
/// may be too much, and is paged; a node refuses that.
inline constexpr std::string_view kSpatialPolicy = "spatial";
/// What a node can be told to go by: the policies, `spatial` and `auto`.
std::vector<std::string> NodePolicyNames();

/// Jobs other than `job` that occupy a lane. A settled job without a profile never comes back to a
/// trough, and a quiet one may not for long: if they counted, `temporal` would open no other gate.
/// One with collective operations does not where there is room for all: it takes no turns.
uint32_t Occupants(const Ledger& ledger, JobId job);

/// Whether the one that began last is as far as Config::phase wants it. phase.cc
bool InPhase(const Asked& asked);

// temporal.cc
bool TemporalMayOpen(const Asked& asked);
// flow.cc
bool FlowMayOpen(const Asked& asked);
// timeshift.cc
bool TimeShiftMayOpen(const Asked& asked);
double TimeShiftOpensIn(const Asked& asked, double within);
// nodegroup.cc
bool NodeGroupMayOpen(const Asked& asked);
bool NodeGroupMayPass(const Asked& asked);

}  // namespace sluice::scheduler
