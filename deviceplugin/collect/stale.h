// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "common/grant/record.h"

namespace sluice::deviceplugin {

/// Which grants are over. Nobody tells a device plugin that a container has ended; what shows it:
///
/// * One of its ids was allocated again, more than `kOneAdmission` later. Kubelet allocates for all
///   containers of a pod in one go, and an init container's ids once more for those after it; later
///   than that it is another pod's, so this one's has ended.
/// * No container has one of its ids, for `kUnseen` since it was made: kubelet lists a container as
///   long as its pod is there, from shortly after it was admitted.
///
/// Pure. `in_use`: the ids that kubelet lists; nullptr: it does not say. `now_ns` since 1970, as in
/// the records; a clock that was set back makes grants younger, never staler.
std::vector<std::string> StaleGrants(const std::vector<GrantRecord>& grants,
                                     const std::set<std::string>* in_use, uint64_t now_ns);

inline constexpr uint64_t kOneAdmissionNs = 60'000'000'000;
inline constexpr uint64_t kUnseenNs = 120'000'000'000;

}  // namespace sluice::deviceplugin
