// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <string>

#include "common/status.h"

namespace sluice::deviceplugin {

/// Whether the plugin that listens at `socket` answers as kubelet asks it, for a probe.
/// kUnavailable, naming the socket: nobody does within three seconds.
Status AskPlugin(const std::string& socket);

}  // namespace sluice::deviceplugin
