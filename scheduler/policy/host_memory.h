// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <optional>
#include <vector>

#include "scheduler/policy/policy.h"

/// Who goes to host memory, and when it comes back. A job that left its claim goes in the middle of
/// its iteration where nothing else moves (docs/adr/0016). Jobs at their trough go by turns, so
/// that the others have room for more than their bases leave: time slices of residence
/// (docs/adr/0036). Whose base is away waits to begin its iteration, as at its gate 0; when its
/// slice has passed (Request::due, of whoever has the clock) nobody else begins one before it is
/// back, and another one makes room for it.
namespace sluice::scheduler {

/// Somebody is on its way to host memory or back.
bool SomebodyMoves(const std::vector<Request>& requests);

/// Nobody passes the request any more.
bool Overdue(const Ledger& ledger, const Request& request, const std::vector<Request>& requests,
             const Config& config);

/// The request of the job at its gate 0 whose base goes to host memory now; nullopt: nobody's does.
/// Whoever is in the place of one that has to come back; else, where more are there than
/// Config::residents or one is due, the one that has been there longest of those that can be moved
/// and have begun an iteration since they came back. Equal turns for everybody, whatever the
/// priorities: those say who begins first.
std::optional<size_t> WhoLeaves(const Ledger& ledger, const std::vector<Request>& requests,
                                const Config& config);

/// Whether a job in host memory (kSwapIn) comes back as soon as its place is free.
bool MayComeBack(const Ledger& ledger, const Request& request, const std::vector<Request>& requests,
                 const Config& config);

/// What the job has, past its gate, makes room for others, and it can come back with what it asks
/// for when they are at their troughs. A base that is more than was asked for may be less then: the
/// first one after a job was measured is scattered, and it is kept from gathering here.
bool WorthEvicting(const Ledger& ledger, const Request& request);

}  // namespace sluice::scheduler
