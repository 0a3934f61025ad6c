// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <memory>
#include <string>

#include "common/status.h"
#include "deviceplugin/granule/preferred.h"
#include "deviceplugin/metrics/figures.h"
#include "deviceplugin/server/allocator.h"
#include "deviceplugin/server/offer.h"

namespace sluice::deviceplugin {

/// Serves kubelet on a socket of our own. No gRPC in this header: it costs every file that sees it
/// seconds.
class PluginServer {
 public:
  /// Listens when it returns; what lay at `path` before is replaced. kUnavailable: it cannot listen
  /// there. Offer, allocator and figures outlive it.
  static Result<std::unique_ptr<PluginServer>> Start(const std::string& path, const Offer* offer,
                                                     const Allocator* allocator,
                                                     Preference preference, Figures* figures);
  /// Ends the calls under way; removes the socket.
  ~PluginServer();

 private:
  struct Parts;
  explicit PluginServer(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace sluice::deviceplugin
