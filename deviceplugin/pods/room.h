// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <vector>

#include "deviceplugin/pods/pod.h"

namespace sluice::pods {

/// How many granules the GPU of a pod's first container with some has to have: kubelet gives its
/// ids to those behind it, where it is one for the pod's beginning, and they get the rest beside
/// them. `granules`: what that container asks for; of several such pods that have not begun, the
/// largest number. No less than `granules`. Pure.
uint64_t RoomFor(uint64_t granules, const std::vector<Pod>& pods);

}  // namespace sluice::pods
