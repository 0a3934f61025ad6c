// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <string>
#include <vector>

#include "common/grant/store.h"
#include "deviceplugin/granule/device_ids.h"
#include "deviceplugin/server/access.h"

namespace sluice::deviceplugin {

/// Turns what kubelet decided into grants. It holds nothing between two calls, so any number of
/// them may run at a time: which container gets which ids is kubelet's business, and a grant is its
/// own folder. For several threads; ids and store outlive it.
class Allocator {
 public:
  Allocator(const DeviceIds* ids, const GrantStore* store, Delivery delivery)
      : ids_(ids), store_(store), delivery_(std::move(delivery)) {}

  /// A grant for each container of the call, in its order, or for none of them: kubelet does not
  /// start the pod after an error. kInvalidArgument, kResourceExhausted: GpuOf; others: the
  /// system's. `now_ns` since 1970.
  Result<std::vector<Access>> Allocate(const std::vector<std::vector<std::string>>& containers,
                                       uint64_t now_ns) const;

 private:
  Status MakeMpsFolder(const std::string& grant) const;

  const DeviceIds* ids_;
  const GrantStore* store_;
  const Delivery delivery_;
};

}  // namespace sluice::deviceplugin
