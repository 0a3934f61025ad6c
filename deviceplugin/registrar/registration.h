// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <string>

#include "common/status.h"

namespace sluice::deviceplugin {

/// Tells kubelet at `kubelet_socket` of the plugin that listens at `endpoint` (a name in the same
/// folder) and offers `resource`. kUnavailable: nobody answers within a second; others: what
/// kubelet says against it.
Status RegisterWithKubelet(const std::string& kubelet_socket, const std::string& endpoint,
                           const std::string& resource);

}  // namespace sluice::deviceplugin
