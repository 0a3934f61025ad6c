// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tests/model/search.h"

namespace sluice::scheduler::model {

enum class Stage : uint8_t { kAbsent, kLiving, kDying, kGone };

struct ClientState {
  Stage stage = Stage::kAbsent;
  bool sums_only = false;  // its gate was opened without a promise in extents
  bool measured = false;   // it has been at its trough, drained
  bool deviated = false;   // it has gone beyond its promise since its last trough
  Extents on_gpu;    // released, and the GPU may still touch it (the model's own book-keeping)
  Extents released;  // of its free units, those it gave back since its trough
};

/// One state of the model. `waiting` has at most one request per client; their tickets are 0, 1, 2
/// ... by arrival.
struct World {
  explicit World(const ModelConfig& config);

  Ledger ledger;
  std::vector<ClientState> clients;
  std::vector<Request> waiting;
  int deaths = 0;
  bool promises_broken = false;  // somebody lost its profile or drifted: I3 need not hold any more

  bool Waits(JobId job) const;
  bool Leaves(JobId job) const;  // it is being evicted
  /// Evicted, and nothing but others keeps it away: its slice has ended, where it went by turns.
  bool IsDue(const Job& job) const;
  /// Two worlds with one key behave alike (ModelConfig::compare_copies holds that against it). All
  /// that the policy reads is in it; limits, requests and names never change, and what a step
  /// counts for people is no behaviour.
  std::string Key() const;
};

/// What happened on the way from one state to the next.
struct Step {
  World world;
  std::string label;
  bool helps = true;  // false: a death; nobody may depend on it to get on
  std::vector<std::pair<Finding, std::string>> findings;
  size_t denials = 0;
  size_t evictions = 0;
  size_t sums_only = 0;
  size_t lent = 0;
  bool begins = false;  // an iteration: a gate 0 opens, or a newcomer begins
};

/// Every next state: each action of each client, followed by all that the policy decides.
std::vector<Step> NextSteps(const ModelConfig& config, const World& world);

/// The client is at its trough or has left: it got on.
bool GotOn(const World& world, JobId job);

}  // namespace sluice::scheduler::model
