// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/status.h"
#include "deviceplugin/pods/pod.h"

/// What the API server says of pods and is told of them, as JSON. Pure.
namespace sluice::deviceplugin {

struct PodList {
  std::vector<pods::Pod> pods;
  std::string version;  // to watch from
};

/// Of a PodList of the API; `resource` names what granules are. kInvalidArgument: it is none.
Result<PodList> ParsePodList(std::string_view json, const std::string& resource);

struct PodEvent {
  enum class Kind { kThere, kGone, kVersion, kError };
  Kind kind = Kind::kError;
  pods::Pod pod;        // kThere, kGone
  std::string version;  // of all but kError
  std::string error;
};

/// A line of a watch. kInvalidArgument: it is none.
Result<PodEvent> ParsePodEvent(std::string_view json, const std::string& resource);

/// An event on a pod that people see with `kubectl describe pod`. `now_ns` since 1970. The same
/// text has the same name: the API server does not take it twice, whoever tells it again.
std::string WarningOn(const pods::Pod& pod, const std::string& reason, const std::string& message,
                      const std::string& node, uint64_t now_ns);
/// The same on a node (`kubectl describe node`); it belongs into the namespace `default`.
std::string WarningOnNode(const std::string& node, const std::string& reason,
                          const std::string& message, uint64_t now_ns);

}  // namespace sluice::deviceplugin
