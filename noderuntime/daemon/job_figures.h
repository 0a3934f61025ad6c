// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "intercept/protocol/wire.h"
#include "noderuntime/flow/flow.h"

namespace sluice::noded {

/// What the job's program has allocated of what it holds, and GPU time that it has issued and that
/// is not completed. Its page says so, into which it may write anything: as far as that can be.
uint64_t LiveBytesOf(const flow::Flow& flow, flow::JobId job);
uint64_t RunAheadNsOf(const flow::Flow& flow, flow::JobId job);

/// What a process of the job is told about the job's memory: what cuMemGetInfo says in the process
/// that has the session. `limit_bytes`: as it was registered, 0 when nobody gave one; `pid`: 0
/// while there is no session.
protocol::Told FiguresOf(const flow::Flow& flow, flow::JobId job, uint64_t limit_bytes, pid_t pid);

}  // namespace sluice::noded
