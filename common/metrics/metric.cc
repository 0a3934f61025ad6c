// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "common/metrics/metric.h"

#include <algorithm>

namespace sluice::metrics {
namespace {

const char* TypeName(Type type) {
  switch (type) {
    case Type::kGauge:
      return "gauge";
    case Type::kCounter:
      return "counter";
    case Type::kHistogram:
      return "histogram";
  }
  return "";
}

/// "node, gpu" as "`node`, `gpu`".
std::string Quoted(const std::string& names) {
  std::string text;
  for (size_t at = 0; at < names.size();) {
    const size_t end = std::min(names.find(", ", at), names.size());
    text += (text.empty() ? "`" : ", `") + names.substr(at, end - at) + '`';
    at = end + 2;
  }
  return text;
}

}  // namespace

std::string Describe(const std::vector<Group>& groups) {
  std::string text;
  for (const Group& group : groups) {
    text += (text.empty() ? "## " : "\n## ") + std::string(group.title) +
            "\n\nLabels of each: " + Quoted(group.labels) +
            ".\n\n| metric | type | further labels | |\n|---|---|---|---|\n";
    for (const Metric& metric : group.metrics) {
      text += "| `" + std::string(metric.name) + "` | " + TypeName(metric.type) + " | " +
              Quoted(metric.labels) + " | " + metric.help + " |\n";
    }
  }
  return text;
}

}  // namespace sluice::metrics
