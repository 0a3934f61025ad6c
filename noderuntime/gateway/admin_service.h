// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <memory>
#include <string>

#include "common/status.h"
#include "noderuntime/gateway/node.h"

namespace sluice::gateway {

/// The Admin service (api/admin.proto) on a Unix socket that only its owner may open.
class AdminServer {
 public:
  /// Listens afterwards; what was at `path` is replaced. kUnavailable: it cannot. `node` outlives
  /// it.
  static Result<std::unique_ptr<AdminServer>> Start(const std::string& path, const Node* node);
  ~AdminServer();

 private:
  struct Parts;
  explicit AdminServer(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace sluice::gateway
