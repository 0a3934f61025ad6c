// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <map>
#include <string>
#include <vector>

#include "common/grant/record.h"
#include "deviceplugin/pods/owned.h"
#include "deviceplugin/pods/pod.h"

namespace sluice::pods {

struct Match {
  std::string pod;   // UID
  std::string part;  // container
  friend bool operator==(const Match&, const Match&) = default;
};

/// Whose each grant is, `known` among them; those that nobody can be shown to have are left out. A
/// container has one grant, however often it is restarted: it gets none that is not in `known`
/// where it has one there. Pure.
///
/// `owners`: as kubelet lists them: containers, not those for a pod's beginning, which it allocates
/// for first, from the same ids where later ones ask, too. What is over is listed for a while.
///
/// * Of several grants with the ids of one container, the newest is that container's. Older ones
///   since the pod was made are those of the init containers that ask for as many granules.
/// * A grant with ids that nobody is listed with is that of the one pod which asks for as many
///   granules in an init container and in no other; where there are two such pods it stays open.
///   To be wrong here would give nobody anything: the daemon lets only that pod's processes in.
std::map<std::string, Match> MatchGrants(const std::vector<GrantRecord>& grants,
                                         const std::vector<Owned>& owners,
                                         const std::vector<Pod>& pods,
                                         std::map<std::string, Match> known = {});

}  // namespace sluice::pods
