// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <map>
#include <string>

#include "common/status.h"

namespace sluice::deviceplugin {

/// Which container of which pod has each id of `resource`, as kubelet lists them at `socket`:
/// "NAMESPACE/POD/CONTAINER" by id. kUnavailable: nobody answers within a second.
Result<std::map<std::string, std::string>> OwnersOfIds(const std::string& socket,
                                                       const std::string& resource);

}  // namespace sluice::deviceplugin
