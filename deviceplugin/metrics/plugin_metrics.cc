// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "deviceplugin/metrics/plugin_metrics.h"

#include <functional>

namespace sluice::deviceplugin {
namespace {

using metrics::Family;
using metrics::Type;

struct View {
  const Figures& figures;
  const NodeCounts& counts;
};
struct Row {
  metrics::Metric metric;
  std::function<void(const View&, Family*)> fill;
};

void AddResult(const char* result, const std::atomic<uint64_t>& count, Family* family) {
  family->Add(static_cast<double>(count.load()), {{"result", result}});
}

void Devices(const View& view, Family* family) {
  for (size_t i = 0; i < view.counts.gpus.size(); ++i) {
    const Offer::Counts& counts = view.counts.devices[i];
    for (const auto& [state, count] : {std::pair{"healthy", counts.healthy},
                                       {"unhealthy", counts.unhealthy},
                                       {"withheld", counts.withheld}}) {
      family->Add(static_cast<double>(count),
                  {{"gpu", std::to_string(i)},
                   {"UUID", metrics::LabelValue(view.counts.gpus[i].uuid)},
                   {"state", state}});
    }
  }
}

metrics::Histogram HistogramOf(const TimeCounts& times) {
  metrics::Histogram out;
  out.bounds_ns.assign(TimeCounts::kBoundsNs.begin(), TimeCounts::kBoundsNs.end());
  for (size_t i = 0; i <= TimeCounts::kBoundsNs.size(); ++i) out.counts.push_back(times.count(i));
  out.sum_ns = times.sum_ns();
  return out;
}

const std::vector<Row>& Table() {
  static const std::vector<Row> table = {
      {{"sluice_plugin_build_info", Type::kGauge, "version", "1; which version the plugin is of"},
       [](const View&, Family* family) {
         family->Add(1.0, {{"version", SLUICE_VERSION}});
       }},
      {{"sluice_plugin_registered", Type::kGauge, "", "1: kubelet knows the plugin"},
       [](const View& view, Family* family) {
         family->Add(view.figures.registered.load() ? 1.0 : 0.0);
       }},
      {{"sluice_plugin_registrations_total", Type::kCounter, "result",
        "How often it told kubelet of itself; `result`: ok, failed"},
       [](const View& view, Family* family) {
         AddResult("ok", view.figures.registrations, family);
         AddResult("failed", view.figures.registrations_failed, family);
       }},
      {{"sluice_plugin_allocations_total", Type::kCounter, "result",
        "Kubelet's calls for grants; `result`: granted, refused (the GPU is somebody else's, or "
        "what was asked for is on no single one), failed"},
       [](const View& view, Family* family) {
         AddResult("granted", view.figures.allocations_granted, family);
         AddResult("refused", view.figures.allocations_refused, family);
         AddResult("failed", view.figures.allocations_failed, family);
       }},
      {{"sluice_plugin_allocate_seconds", Type::kHistogram, "", "How long such a call took"},
       [](const View& view, Family* family) { family->Add(HistogramOf(view.figures.allocate)); }},
      {{"sluice_plugin_devices", Type::kGauge, "gpu, UUID, state",
        "Granules of each GPU; `gpu`: as the plugin counts those that it sees; `state`: healthy "
        "(offered), unhealthy (the GPU reports an error), withheld (it is somebody else's or being "
        "drained, or jobs may need the memory)"},
       Devices},
      {{"sluice_plugin_grants", Type::kGauge, "", "Grants that containers of this node have"},
       [](const View& view, Family* family) {
         if (view.counts.grants.has_value()) family->Add(static_cast<double>(*view.counts.grants));
       }},
      {{"sluice_plugin_events_total", Type::kCounter, "result",
        "Events that it wrote on pods and on the node; `result`: ok, failed"},
       [](const View& view, Family* family) {
         AddResult("ok", view.figures.events_written, family);
         AddResult("failed", view.figures.events_failed, family);
       }},
  };
  return table;
}

}  // namespace

std::vector<prometheus::MetricFamily> MetricsOf(const std::string& node, const Figures& figures,
                                                const NodeCounts& counts) {
  std::vector<prometheus::MetricFamily> out;
  for (const Row& row : Table()) {
    Family family(row.metric);
    family.SetCommon(metrics::LabelText(metrics::Labels{{"node", metrics::LabelValue(node)}}));
    row.fill({figures, counts}, &family);
    if (!family.empty()) out.push_back(std::move(family).Take());
  }
  return out;
}

std::vector<metrics::Group> MetricGroups() {
  metrics::Group group = {"Device plugin", "node", {}};
  for (const Row& row : Table()) group.metrics.push_back(row.metric);
  return {std::move(group)};
}

}  // namespace sluice::deviceplugin
