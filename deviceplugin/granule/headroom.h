// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "deviceplugin/granule/device_ids.h"

namespace sluice::deviceplugin {

/// A grant that is in use, as far as room for others goes.
struct Holding {
  std::string gpu;                   // UUID
  uint64_t granted_bytes = 0;        // by its granules
  uint64_t limit_bytes = 0;          // most that it may hold; no less than granted
  std::vector<std::string> devices;  // its ids
};

/// Ids that nobody may be given while these are in use: as many free ones of each GPU as the
/// largest burst beyond a grant needs, or all that are free. Were they given away, too, one job at
/// its peak and the grants of all others would not fit beside each other (I0). Ids that are
/// allocated are never among them. Pure.
std::set<std::string> Withheld(const DeviceIds& ids, const std::vector<Holding>& holdings);

}  // namespace sluice::deviceplugin
