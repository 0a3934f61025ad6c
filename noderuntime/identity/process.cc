// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/identity/process.h"

#include <poll.h>

#include "common/read_whole.h"

namespace sluice::identity {
namespace {

std::string CgroupOf(const std::string& proc, const std::string& process) {
  return ReadWhole(proc + "/" + process + "/cgroup");
}

bool HasEnded(int pidfd) {
  pollfd ended = {pidfd, POLLIN, 0};
  return ::poll(&ended, 1, 0) != 0;
}

}  // namespace

std::optional<ContainerOf> ContainerOfProcess(pid_t pid, int pidfd, const std::string& proc) {
  if (pid <= 0) return std::nullopt;
  const std::string text = CgroupOf(proc, std::to_string(pid));
  // What was read may be another one's with its number.
  if (HasEnded(pidfd)) return std::nullopt;
  return ContainerFromCgroup(text);
}

bool InOwnContainer(pid_t pid, int pidfd, const std::string& proc) {
  if (pid <= 0) return false;
  const std::string own = CgroupOf(proc, "self");
  if (CgroupOf(proc, std::to_string(pid)) != own || HasEnded(pidfd)) return false;
  // From inside a cgroup namespace of its own a container is "/", which names none: that it is one
  // shows by the node's first process, which is outside of it.
  return ContainerFromCgroup(own).has_value() ||
         CgroupOf(proc, "1").find(":/..") != std::string::npos;
}

Status CheckPod(pid_t pid, const std::optional<ContainerOf>& process, std::string* pod) {
  if (process.has_value() && pod->empty()) *pod = process->pod;
  if (pod->empty() || (process.has_value() && process->pod == *pod)) return {};
  return Status(StatusCode::kPermissionDenied,
                "this grant is pod " + *pod + "'s, and process " + std::to_string(pid) +
                    (process.has_value() ? " is pod " + process->pod + "'s" : " is in no pod"));
}

}  // namespace sluice::identity
