// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <optional>

#include "common/status.h"
#include "noderuntime/config/options.h"
#include "noderuntime/daemon/takeover.h"
#include "noderuntime/gpu/device.h"
#include "noderuntime/keeper/keeper_client.h"

namespace sluice::noded {

/// What a daemon that died in this folder left behind, and the keeper that has it; the options
/// become what its pool was made with, as the clients have that mapped.
struct Predecessor {
  keeper::KeeperClient keeper;
  Takeover found;
};

/// nullopt: there is none, or what it left can never be of use (another version, another GPU); then
/// its keeper has been told to end. An error: its state cannot be had just now, after `patience_ns`
/// of trying. It stays where it is for a later start, and this one must not go on: a pool beside
/// it would make its jobs' memory unreachable for good.
Result<std::optional<Predecessor>> FindPredecessor(config::Options* options,
                                                   const gpu::DeviceInfo& device,
                                                   uint64_t patience_ns = 3'000'000'000);

}  // namespace sluice::noded
