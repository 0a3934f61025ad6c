// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace sluice::identity {

/// Which container of which pod a process belongs to.
struct ContainerOf {
  std::string pod;        // UID as the API has it, with dashes; a static pod's has none
  std::string container;  // 64 hexadecimal digits
  friend bool operator==(const ContainerOf&, const ContainerOf&) = default;
};

/// What /proc/PID/cgroup says, with cgroups of version 1 and 2, kubelet's drivers cgroupfs and
/// systemd, containerd, CRI-O and Docker, and from inside a cgroup namespace of its own, where the
/// path begins with "/..". Nothing: the process is in no container of a pod, or the lines name two.
///
/// A container may be able to make groups below its own, with any name, so the outermost names
/// count.
std::optional<ContainerOf> ContainerFromCgroup(std::string_view text);

}  // namespace sluice::identity
