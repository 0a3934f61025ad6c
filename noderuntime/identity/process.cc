// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/identity/process.h"

#include <poll.h>

#include <fstream>
#include <sstream>

namespace sluice::identity {

std::optional<ContainerOf> ContainerOfProcess(pid_t pid, int pidfd, const std::string& proc) {
  if (pid <= 0) return std::nullopt;
  std::ostringstream text;
  text << std::ifstream(proc + "/" + std::to_string(pid) + "/cgroup").rdbuf();
  // Readable: it has ended, and what was read may be another one's with its number.
  pollfd ended = {pidfd, POLLIN, 0};
  if (::poll(&ended, 1, 0) != 0) return std::nullopt;
  return ContainerFromCgroup(text.str());
}

Status CheckPod(pid_t pid, const std::optional<ContainerOf>& process, std::string* pod) {
  if (process.has_value() && pod->empty()) *pod = process->pod;
  if (pod->empty() || (process.has_value() && process->pod == *pod)) return {};
  return Status(StatusCode::kPermissionDenied,
                "this grant is pod " + *pod + "'s, and process " + std::to_string(pid) +
                    (process.has_value() ? " is pod " + process->pod + "'s" : " is in no pod"));
}

}  // namespace sluice::identity
