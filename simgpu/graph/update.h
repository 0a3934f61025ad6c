// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <utility>
#include <vector>

#include "simgpu/graph/graph.h"

namespace sluice::simgpu {

/// Whether the work of a node in an executable graph may be changed into another, which is more
/// than a change of operands: the header refuses what needs other resources.
bool CopyMayBecome(const CopyWork& now, const CopyWork& then);
bool MemsetMayBecome(const MemsetWork& now, const MemsetWork& then);

/// Which node of `graph` each node of an executable graph corresponds to, by the rules of
/// cuGraphExecUpdate: from the exit nodes backwards along the edges in their order. The result
/// names the first thing that is in the way.
using NodePairs = std::vector<std::pair<CUgraphNode, CUgraphNode>>;
CUgraphExecUpdateResultInfo PairForUpdate(CUgraph executable, CUgraph graph, NodePairs* pairs);

}  // namespace sluice::simgpu
