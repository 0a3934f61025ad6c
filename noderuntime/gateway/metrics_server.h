// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <memory>
#include <string>

#include "common/status.h"
#include "noderuntime/gateway/node.h"

namespace sluice::gateway {

/// Serves /metrics over HTTP. Each scrape asks the daemons; nothing is kept in between.
class MetricsServer {
 public:
  /// `address`: ADDRESS:PORT; port 0: any. kUnavailable: it cannot listen there. `node` outlives
  /// it.
  static Result<std::unique_ptr<MetricsServer>> Start(const std::string& address, const Node* node);
  ~MetricsServer();

  int port() const;

 private:
  struct Parts;
  explicit MetricsServer(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace sluice::gateway
