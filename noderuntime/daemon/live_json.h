// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "noderuntime/daemon/status_json.h"
#include "noderuntime/figures/held_history.h"

namespace sluice::noded {

/// The answer to Live: one JSON object with what moves, in a tenth of the status' size. Amounts in
/// bytes, those in "frames" in lease units ("unit").
std::string LiveJson(const flow::Flow& flow, const std::map<flow::JobId, JobFacts>& jobs,
                     const figures::Figures& figures, figures::HeldHistory* history,
                     int64_t unix_offset_ns, uint64_t since, uint64_t now_ns);

}  // namespace sluice::noded
