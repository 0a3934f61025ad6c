// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include "intercept/protocol/pages.h"
#include "scheduler/profile/gates.h"
#include "scheduler/profile/profile.h"

namespace sluice::flow {

/// Writes a profile into the daemon page, behind its sequence lock. False when it does not fit
/// there (a cycle longer than the page has room for).
bool PublishProfile(const scheduler::Profile& profile, const scheduler::CyclePlan& plan,
                    uint32_t id, protocol::DaemonPage* page);

/// Other amounts (credit, need behind each gate) for the profile that stands there, if it is one
/// with as many gates: a client that follows it goes on where it is.
void PublishAmounts(const scheduler::CyclePlan& plan, protocol::DaemonPage* page);

/// The client is without a profile from its next look on.
void WithdrawProfile(protocol::DaemonPage* page);

}  // namespace sluice::flow
