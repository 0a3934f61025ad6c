// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <prometheus/metric_family.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/metrics/metric.h"

namespace sluice::metrics {

using Labels = std::vector<std::pair<const char*, std::string>>;

/// Labels as an answer has them, `a="x",b="y"`, put together once for all the samples that have
/// them: prometheus-cpp writes values byte by byte through a stream, and dozens of jobs have a
/// megabyte of them. What it takes for the name of one label is all but the value of the last.
struct LabelText {
  std::string name;
  std::string value;

  LabelText() = default;
  explicit LabelText(const Labels& labels) { Add(labels); }
  void Add(const Labels& labels);
};

/// Counts of times by upper bound, as who counts keeps them.
struct Histogram {
  std::vector<uint64_t> bounds_ns;  // ascending
  std::vector<uint64_t> counts;     // one more than bounds: the last is of what is above all
  uint64_t sum_ns = 0;
};

/// The samples of one family, as prometheus-cpp takes them. Only what is known is added: a counter
/// that is not there is no counter at 0.
class Family {
 public:
  explicit Family(const Metric& metric);

  /// Room for so many samples, which are large.
  void Reserve(size_t samples) { family_.metric.reserve(samples); }
  /// What every sample has until the next call, before its own labels.
  void SetCommon(LabelText labels) { common_ = std::move(labels); }
  void Add(double value, const Labels& labels = {});
  void Add(const std::optional<uint64_t>& value, double scale = 1);
  /// Nothing, where counts and bounds do not fit together: it is not what it is said to be.
  void Add(const std::optional<Histogram>& histogram);

  bool empty() const { return family_.metric.empty(); }
  prometheus::MetricFamily Take() && { return std::move(family_); }

 private:
  prometheus::ClientMetric Sample(const Labels& labels) const;

  prometheus::MetricFamily family_;
  LabelText common_;
};

constexpr size_t kMostLabelBytes = 253;  // the longest name of a Kubernetes object

/// What came from a user, as a label may carry it: valid UTF-8 of at most kMostLabelBytes, each
/// byte that is none and each character that people do not get (Printable) replaced by U+FFFD. One
/// bad byte would cost Prometheus the whole answer.
std::string LabelValue(std::string_view text);

}  // namespace sluice::metrics
