// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "deviceplugin/pods/match.h"
#include "deviceplugin/pods/pod.h"

namespace sluice::pods {

/// Which grants are over, where the API server says which pods there are. Pure. Never one whose pod
/// is there, whatever kubelet lists (after a start of its own that is nothing for a while). Times
/// since 1970, of this machine's clock; `unseen_ns`: how long after a grant was made its pod is to
/// be seen by then.
///
/// * Somebody's: his pod is over, and kubelet lists its ids no more, or as another pod's: one that
///   was deleted by force is gone from the API server before its containers are.
/// * Nobody's: the pods were listed `unseen_ns` after it was made, none of its ids is in kubelet's
///   list, no pod came to it, and every container that asks for as many granules has its own.
std::vector<std::string> OverGrants(const std::vector<GrantRecord>& grants, const Signs& signs,
                                    const NodePods& pods, const Matches& matches,
                                    uint64_t unseen_ns);

}  // namespace sluice::pods
