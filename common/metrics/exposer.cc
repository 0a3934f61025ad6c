// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "common/metrics/exposer.h"

#include <prometheus/collectable.h>
#include <prometheus/exposer.h>

#include <exception>
#include <optional>

namespace sluice::metrics {
namespace {

class Scrape final : public prometheus::Collectable {
 public:
  explicit Scrape(Exposer::Collect collect) : collect_(std::move(collect)) {}
  std::vector<prometheus::MetricFamily> Collect() const override { return collect_(); }

 private:
  const Exposer::Collect collect_;
};

}  // namespace

struct Exposer::Parts {
  std::shared_ptr<Scrape> scrape;  // the exposer has no more than a weak pointer
  std::optional<prometheus::Exposer> exposer;
};

Exposer::Exposer(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

Exposer::~Exposer() = default;

Result<std::unique_ptr<Exposer>> Exposer::Start(const std::string& address, Collect collect) {
  auto parts = std::make_unique<Parts>();
  parts->scrape = std::make_shared<Scrape>(std::move(collect));
  // Several: one that is slow must not keep the others from their figures.
  const std::vector<std::string> options = {"listening_ports",    address, "num_threads", "3",
                                            "request_timeout_ms", "2000"};
  try {
    parts->exposer.emplace(options);
  } catch (const std::exception& error) {
    return Status(StatusCode::kUnavailable,
                  "--metrics " + address + ": cannot listen there: " + error.what());
  }
  parts->exposer->RegisterCollectable(parts->scrape);
  return std::unique_ptr<Exposer>(new Exposer(std::move(parts)));
}

int Exposer::port() const { return parts_->exposer->GetListeningPorts().front(); }

}  // namespace sluice::metrics
