// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "common/status.h"
#include "common/unique_fd.h"
#include "noderuntime/daemon/kept_state.h"
#include "noderuntime/keeper/keeper_client.h"
#include "noderuntime/keeper/notebook.h"

namespace sluice::noded {

/// A job's descriptors as the keeper had them; invalid: it did not.
struct KeptFds {
  UniqueFd listener;
  UniqueFd launcher;
  UniqueFd mark_page;
  UniqueFd client_page;
  UniqueFd daemon_page;
  UniqueFd liveness;
  UniqueFd pidfd;

  bool whole_session() const {
    return mark_page.valid() && client_page.valid() && daemon_page.valid() && holder();
  }
  bool holder() const { return liveness.valid() && pidfd.valid(); }
};

/// Everything that a daemon which died has left behind.
struct Takeover {
  KeptState state;
  keeper::Notebook notebook;
  std::vector<UniqueFd> pool;
  std::map<uint32_t, KeptFds> jobs;
};

/// nullopt: the keeper has nothing. An error: what it has cannot be used.
Result<std::optional<Takeover>> LoadTakeover(keeper::KeeperClient* keeper);

}  // namespace sluice::noded
