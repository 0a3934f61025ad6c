// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "deviceplugin/pods/room.h"

#include <algorithm>

namespace sluice::pods {

uint64_t RoomFor(uint64_t granules, const std::vector<Pod>& pods) {
  uint64_t most = granules;
  for (const Pod& pod : pods) {
    if (pod.over || pod.begun) continue;
    uint64_t room = 0;
    uint64_t kept = 0;  // for those behind
    for (const Pod::Part& part : pod.parts) {
      if (part.granules == 0) continue;
      if (room == 0 && part.granules != granules) break;
      const uint64_t again = std::min(part.granules, kept);
      room += part.granules - again;
      kept = part.init ? std::max(kept, part.granules) : kept - again;
      if (kept == 0) break;
    }
    most = std::max(most, room);
  }
  return most;
}

}  // namespace sluice::pods
