// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sluice::metrics {

enum class Type : uint8_t { kGauge, kCounter, kHistogram };

/// A metric family as a program declares it, once: what it serves and what its page says come from
/// here. Names as Prometheus wants them: base units, `_total` for counters, `_ratio` for 0 to 1.
struct Metric {
  const char* name;
  Type type;
  const char* labels;  // beside those of its group, "policy, lanes"; empty: none
  const char* help;    // one sentence
};

/// Families that have labels in common.
struct Group {
  const char* title;
  const char* labels;  // "node, gpu"
  std::vector<Metric> metrics;
};

/// A page's tables, in Markdown: a heading, the common labels and a row for each family.
std::string Describe(const std::vector<Group>& groups);

}  // namespace sluice::metrics
