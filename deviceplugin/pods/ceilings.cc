// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "deviceplugin/pods/ceilings.h"

#include <algorithm>

#include "common/bytes.h"

namespace sluice::pods {

std::string BeyondCeiling(const Ceilings& ceilings, const std::string& space, const Terms& terms,
                          uint64_t granted_bytes) {
  auto found = ceilings.find(space);
  if (found == ceilings.end()) found = ceilings.find("*");
  if (found == ceilings.end()) return "";
  const Ceiling& ceiling = found->second;
  std::string all;
  const auto add = [&all, &space](const std::string& text) {
    all += (all.empty() ? "" : "\n") + text + " for pods of namespace '" + space + "'";
  };
  if (ceiling.limit_bytes.has_value()) {
    const uint64_t most = std::max(*ceiling.limit_bytes, granted_bytes);
    if (terms.limit_bytes > most) {
      add("sluice.dev/memory-limit " + FormatBytes(terms.limit_bytes) + ": allowed: up to " +
          FormatBytes(most));
    }
  }
  if (ceiling.priority.has_value() && terms.priority > *ceiling.priority) {
    add("sluice.dev/priority " + std::to_string(terms.priority) + ": allowed: up to " +
        std::to_string(*ceiling.priority));
  }
  if (!ceiling.share_groups && !terms.share_group.empty()) {
    add("sluice.dev/share-group '" + terms.share_group + "': allowed: none");
  }
  return all;
}

}  // namespace sluice::pods
