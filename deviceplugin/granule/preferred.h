// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "deviceplugin/granule/device_ids.h"

namespace sluice::deviceplugin {

/// Which GPU a container gets when several have room.
enum class Packing : uint8_t {
  kPack,    // the one with the least room that suffices: large requests find room later
  kSpread,  // the one with the most
};

/// What is known of who asks.
struct Preference {
  Packing packing = Packing::kPack;
  /// Granules that the GPU has to have for the pod of a container which asks for so many; at least
  /// those. For several threads; none: that is not known.
  std::function<uint64_t(uint64_t granules)> room = {};
};

/// `size` of the `available` ids for one container, those that it must have first, all on one GPU:
/// memory of two GPUs is no larger memory. On one with room for the whole pod, where there is one.
/// kInvalidArgument: an id that nobody advertised, or the ids that it must have lie on two GPUs or
/// are more than `size`. kResourceExhausted: no GPU has so many; the text says which has most.
Result<std::vector<std::string>> PreferredIds(const DeviceIds& ids,
                                              const std::vector<std::string>& available,
                                              const std::vector<std::string>& must_have,
                                              size_t size, const Preference& preference);

/// The GPU on which all of these ids lie, as kubelet hands them out in Allocate. kInvalidArgument:
/// an unknown id, one twice, or none at all; kResourceExhausted: they lie on several GPUs, which is
/// what kubelet does when a request fits on none.
Result<uint32_t> GpuOf(const DeviceIds& ids, const std::vector<std::string>& allocated);

}  // namespace sluice::deviceplugin
