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

/// By grant.
using Matches = std::map<std::string, Match>;
using Candidates = std::vector<Match>;

/// What shows whose a grant is.
struct Signs {
  /// By grant: the UID of the pod whose process came to it first, as the daemon saw it.
  std::map<std::string, std::string> first_pods;
  /// Containers as kubelet lists them: by names, which are used again, and none of those that end
  /// before the others begin.
  std::vector<Owned> listed;
};

/// Whose each grant is, `known` among them; those that nothing shows to be somebody's are left out,
/// and nothing is ever guessed: a grant with somebody else's name on it would end with him. Pure.
///
/// `grants`: as they were after kubelet had listed its containers. Clocks are compared with none
/// but their own.
///
/// * Kubelet admits one pod at a time, so a pod's grants follow each other, in the order of its
///   containers; and each container takes first from the ids of those for the pod's beginning. A
///   row of grants that is so, and of which one shows to be the pod's, is the pod's.
/// * Where such a row is not there (a record was lost), a grant is the container's that is listed
///   with its ids, or the only one of its pod's that asks for as many.
/// * Of several grants with the same ids the newest is meant.
/// * Who came first goes before kubelet's list, and before what was found without it.
Matches MatchGrants(const std::vector<GrantRecord>& grants, const Signs& signs,
                    const std::vector<Pod>& pods, Matches known = {});

/// The containers without a grant that ask for as many granules: this one, which nobody is found to
/// have, may be any one's of them. Pure.
Candidates CandidatesFor(const GrantRecord& grant, const std::vector<Pod>& pods,
                         const Matches& matches);

}  // namespace sluice::pods
