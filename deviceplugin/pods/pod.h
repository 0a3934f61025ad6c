// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "deviceplugin/pods/annotations.h"

namespace sluice::pods {

/// What the plugin has to know of a pod of its node. A plain value.
struct Pod {
  struct Part {
    std::string name;
    uint64_t granules = 0;  // that it asks for
    bool init = false;      // it is over before the others begin
  };
  std::string space;  // namespace
  std::string name;
  std::string uid;         // as kubelet and its control groups have it
  std::string object;      // UID of the API's object: another one for what stands for a static pod
  uint64_t created_s = 0;  // since 1970
  bool begun = false;      // kubelet has admitted it
  bool over = false;       // all of its containers have ended for good
  Annotations annotations;
  std::string manages_gpus;  // what this pod is, where it manages the node's GPUs; else empty
  std::vector<Part> parts;   // containers, those for its beginning first: as kubelet takes them
};

/// The pods of a node as they are now, as far as the API server has said.
struct NodePods {
  std::vector<Pod> pods;
  /// When they were listed last (since 1970): who was there then is among them, or has ended.
  uint64_t as_of_ns = 0;
};

/// Nullptr: there is none with this UID.
inline const Pod* Find(const std::vector<Pod>& pods, const std::string& uid) {
  const auto found =
      std::find_if(pods.begin(), pods.end(), [&](const Pod& pod) { return pod.uid == uid; });
  return found == pods.end() ? nullptr : &*found;
}

/// Something of it runs, or will.
inline bool IsThere(const std::vector<Pod>& pods, const std::string& uid) {
  const Pod* pod = Find(pods, uid);
  return pod != nullptr && !pod->over;
}

}  // namespace sluice::pods
