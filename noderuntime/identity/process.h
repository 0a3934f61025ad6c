// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "common/status.h"
#include "noderuntime/identity/cgroup.h"

namespace sluice::identity {

/// Of the process behind `pidfd`, whose number is `pid` here. Nothing: it is in no pod's container,
/// it is gone, or its number is none here (another process namespace). `proc`: another folder in
/// the place of /proc, for tests.
std::optional<ContainerOf> ContainerOfProcess(pid_t pid, int pidfd,
                                              const std::string& proc = "/proc");

/// Whether it is in the container that this process is in. False: it is not, it is gone, or this
/// process is in none. Needs the node's processes (hostPID). `proc` as above.
bool InOwnContainer(pid_t pid, int pidfd, const std::string& proc = "/proc");

/// A grant is its first pod's. `pod`: that pod's UID, or empty as long as nobody of a pod came;
/// taken down here. kPermissionDenied: the process is another pod's, or in none, and the text says
/// whose the grant is: the folder, the socket or a connection has got into other hands.
Status CheckPod(pid_t pid, const std::optional<ContainerOf>& process, std::string* pod);

}  // namespace sluice::identity
