// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <string>
#include <vector>

#include "common/status.h"
#include "deviceplugin/inventory/foreign.h"
#include "deviceplugin/pods/owned.h"

namespace sluice::deviceplugin {

/// Which container of which pod has which ids of `resource`, as kubelet lists them at `socket`.
/// kUnavailable: nobody answers within a second.
Result<std::vector<pods::Owned>> OwnersOfIds(const std::string& socket,
                                             const std::string& resource);

/// The devices of all resources but `own`: those that kubelet may give out, and those that
/// containers have. kUnavailable as above; a kubelet that only tells the latter is believed.
Result<std::vector<ForeignDevice>> DevicesOfOthers(const std::string& socket,
                                                   const std::string& own);

}  // namespace sluice::deviceplugin
