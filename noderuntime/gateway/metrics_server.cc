// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/gateway/metrics_server.h"

#include <prometheus/collectable.h>
#include <prometheus/exposer.h>

#include <exception>
#include <optional>

#include "noderuntime/gateway/metrics.h"

namespace sluice::gateway {
namespace {

class Scrape final : public prometheus::Collectable {
 public:
  explicit Scrape(const Node* node) : node_(node) {}
  std::vector<prometheus::MetricFamily> Collect() const override {
    return MetricsOf(node_->Look());
  }

 private:
  const Node* node_;
};

}  // namespace

struct MetricsServer::Parts {
  std::shared_ptr<Scrape> scrape;  // the exposer has no more than a weak pointer
  std::optional<prometheus::Exposer> exposer;
};

MetricsServer::MetricsServer(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

MetricsServer::~MetricsServer() = default;

Result<std::unique_ptr<MetricsServer>> MetricsServer::Start(const std::string& address,
                                                            const Node* node) {
  auto parts = std::make_unique<Parts>();
  parts->scrape = std::make_shared<Scrape>(node);
  try {
    parts->exposer.emplace(address, 1);
  } catch (const std::exception& error) {
    return Status(StatusCode::kUnavailable,
                  "--metrics " + address + ": cannot listen there: " + error.what());
  }
  parts->exposer->RegisterCollectable(parts->scrape);
  return std::unique_ptr<MetricsServer>(new MetricsServer(std::move(parts)));
}

int MetricsServer::port() const { return parts_->exposer->GetListeningPorts().front(); }

}  // namespace sluice::gateway
