// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "deviceplugin/pods/annotations.h"

namespace sluice::pods {

/// Most that the annotations of a namespace's pods may say, by whoever runs the cluster: who can
/// make a pod can write what he likes on it.
struct Ceiling {
  std::optional<uint64_t> limit_bytes;  // of memory-limit; what was granted is allowed in any case
  std::optional<int32_t> priority;
  bool share_groups = true;  // whether share-group may be used
  friend bool operator==(const Ceiling&, const Ceiling&) = default;
};

/// By namespace; "*" is for those that are not named. None: everything is allowed.
using Ceilings = std::map<std::string, Ceiling>;

/// What goes beyond the ceiling of `space`, one line each with field, value and what is allowed;
/// empty: nothing. Pure.
std::string BeyondCeiling(const Ceilings& ceilings, const std::string& space, const Terms& terms,
                          uint64_t granted_bytes);

}  // namespace sluice::pods
