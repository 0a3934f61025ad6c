// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "common/metrics/family.h"

#include "common/printable.h"

namespace sluice::metrics {
namespace {

constexpr char kReplacement[] = "\xEF\xBF\xBD";
constexpr double kNsPerSecond = 1e9;

prometheus::MetricType TypeOf(Type type) {
  switch (type) {
    case Type::kGauge:
      return prometheus::MetricType::Gauge;
    case Type::kCounter:
      return prometheus::MetricType::Counter;
    case Type::kHistogram:
      return prometheus::MetricType::Histogram;
  }
  return prometheus::MetricType::Untyped;
}

std::string Escaped(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\n') {
      escaped += "\\n";
      continue;
    }
    if (c == '\\' || c == '"') escaped += '\\';
    escaped += c;
  }
  return escaped;
}

}  // namespace

void LabelText::Add(const Labels& labels) {
  for (const auto& [next, its_value] : labels) {
    if (!name.empty()) name += "=\"" + Escaped(value) + "\",";
    name += next;
    value = its_value;
  }
}

Family::Family(const Metric& metric) : family_{metric.name, metric.help, TypeOf(metric.type), {}} {}

prometheus::ClientMetric Family::Sample(const Labels& labels) const {
  prometheus::ClientMetric sample;
  LabelText text = common_;
  text.Add(labels);
  if (!text.name.empty()) sample.label = {{std::move(text.name), std::move(text.value)}};
  return sample;
}

void Family::Add(double value, const Labels& labels) {
  prometheus::ClientMetric sample = Sample(labels);
  (family_.type == prometheus::MetricType::Counter ? sample.counter.value : sample.gauge.value) =
      value;
  family_.metric.push_back(std::move(sample));
}

void Family::Add(const std::optional<uint64_t>& value, double scale) {
  if (value.has_value()) Add(static_cast<double>(*value) * scale);
}

void Family::Add(const std::optional<Histogram>& histogram) {
  if (!histogram.has_value() || histogram->counts.size() != histogram->bounds_ns.size() + 1) return;
  prometheus::ClientMetric sample = Sample({});
  prometheus::ClientMetric::Histogram& out = sample.histogram;
  uint64_t count = 0;
  for (size_t i = 0; i < histogram->bounds_ns.size(); ++i) {
    count += histogram->counts[i];
    out.bucket.push_back({count, static_cast<double>(histogram->bounds_ns[i]) / kNsPerSecond});
  }
  out.sample_count = count + histogram->counts.back();
  out.sample_sum = static_cast<double>(histogram->sum_ns) / kNsPerSecond;
  family_.metric.push_back(std::move(sample));
}

std::string LabelValue(std::string_view text) {
  std::string value;
  while (!text.empty()) {
    const Character first = FirstCharacter(text);
    const std::string_view character =
        first.shown ? text.substr(0, first.bytes) : std::string_view(kReplacement);
    if (value.size() + character.size() > kMostLabelBytes) break;
    value += character;
    text.remove_prefix(first.bytes);
  }
  return value;
}

}  // namespace sluice::metrics
