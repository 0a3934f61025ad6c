// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/metrics/family.h"
#include "common/status.h"

namespace sluice::metrics {

/// Serves /metrics over HTTP, in threads of its own. Each scrape asks `collect`; nothing is kept in
/// between. A connection that has not sent its whole request after two seconds is hung up on; while
/// there are too many of them, the oldest is at once, and a scraper is answered.
class Exposer {
 public:
  using Collect = std::function<std::vector<prometheus::MetricFamily>()>;

  /// `address`: ADDRESS:PORT, [ADDRESS]:PORT; port 0: any. kInvalidArgument: it is neither;
  /// kUnavailable: it cannot listen there.
  static Result<std::unique_ptr<Exposer>> Start(const std::string& address, Collect collect);
  ~Exposer();

  int port() const;

 private:
  struct Parts;
  explicit Exposer(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace sluice::metrics
