// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

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
  std::string uid;
  uint64_t created_s = 0;  // since 1970
  bool over = false;       // all of its containers have ended for good
  Annotations annotations;
  std::string manages_gpus;  // what this pod is, where it manages the node's GPUs; else empty
  std::vector<Part> parts;   // containers, those for its beginning first
};

}  // namespace sluice::pods
