// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include "common/status.h"
#include "common/unique_fd.h"
#include "deviceplugin/cluster/patience.h"
#include "deviceplugin/cluster/server_address.h"

namespace sluice::deviceplugin {

/// A TCP connection, which never blocks whoever uses it. A name may have several addresses: they
/// are tried in turn, and share the time. Pods find the API server by a number: only looking up a
/// name, which is the system's to do, may take longer than that. kUnavailable: nobody is there, or
/// not in time.
Result<UniqueFd> ConnectTcp(const ServerAddress& address, const Patience& patience);

}  // namespace sluice::deviceplugin
