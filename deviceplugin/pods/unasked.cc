// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "deviceplugin/pods/unasked.h"

#include <algorithm>

namespace sluice::pods {

std::string Unasked(const Pod& pod, const std::string& resource) {
  const bool none = std::all_of(pod.parts.begin(), pod.parts.end(),
                                [](const Pod::Part& part) { return part.granules == 0; });
  std::string all;
  for (const auto& [field, text] : pod.annotations) {
    const std::optional<Field> ours = FieldOf(field);
    if (!ours.has_value()) continue;
    const auto part = std::find_if(pod.parts.begin(), pod.parts.end(), [&](const Pod::Part& each) {
      return each.name == ours->container;
    });
    const bool there = part != pod.parts.end();
    if (there ? part->granules > 0 : !none) continue;
    all += (all.empty() ? "" : "\n") + field + " " + Quoted(text) + ": allowed where " +
           (ours->container.empty() ? "a container of the pod"
                                    : "container " + Quoted(ours->container)) +
           " asks for " + resource;
  }
  return all;
}

}  // namespace sluice::pods
