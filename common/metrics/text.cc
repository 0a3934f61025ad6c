// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "common/metrics/text.h"

#include <charconv>
#include <cmath>
#include <string_view>

namespace sluice::metrics {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricType;

void AddNumber(double value, std::string* out) {
  if (!std::isfinite(value)) {
    *out += std::isnan(value) ? "NaN" : value > 0 ? "+Inf" : "-Inf";
    return;
  }
  constexpr double kWhole = 9007199254740992.0;  // 2^53
  char digits[32];
  const bool whole = std::fabs(value) < kWhole && value == std::trunc(value);
  const auto [end, error] =
      whole ? std::to_chars(digits, digits + sizeof digits, static_cast<int64_t>(value))
            : std::to_chars(digits, digits + sizeof digits, value, std::chars_format::general);
  out->append(digits, end);
}

void AddEscaped(std::string_view text, const char* what, std::string* out) {
  for (;;) {
    const size_t next = text.find_first_of(what);
    out->append(text.substr(0, next));
    if (next == std::string_view::npos) return;
    *out += '\\';
    *out += text[next] == '\n' ? 'n' : text[next];
    text.remove_prefix(next + 1);
  }
}

const char* TypeName(MetricType type) {
  switch (type) {
    case MetricType::Gauge:
      return "gauge";
    case MetricType::Counter:
      return "counter";
    case MetricType::Histogram:
      return "histogram";
    default:
      return "untyped";
  }
}

/// One line: NAME{LABELS,le="BOUND"} VALUE.
void AddSample(std::string_view name, std::string_view suffix, std::string_view labels,
               const double* bound, double value, std::string* out) {
  out->append(name).append(suffix);
  if (!labels.empty() || bound != nullptr) {
    out->append("{").append(labels);
    if (bound != nullptr) {
      out->append(labels.empty() ? "le=\"" : ",le=\"");
      AddNumber(*bound, out);
      *out += '"';
    }
    *out += '}';
  }
  *out += ' ';
  AddNumber(value, out);
  *out += '\n';
}

void AddHistogram(std::string_view name, std::string_view labels,
                  const ClientMetric::Histogram& histogram, std::string* out) {
  const auto count = static_cast<double>(histogram.sample_count);
  AddSample(name, "_count", labels, nullptr, count, out);
  AddSample(name, "_sum", labels, nullptr, histogram.sample_sum, out);
  double last = -INFINITY;
  for (const ClientMetric::Bucket& bucket : histogram.bucket) {
    last = bucket.upper_bound;
    AddSample(name, "_bucket", labels, &last, static_cast<double>(bucket.cumulative_count), out);
  }
  if (std::isinf(last) && last > 0) return;
  constexpr double kAbove = INFINITY;
  AddSample(name, "_bucket", labels, &kAbove, count, out);
}

}  // namespace

std::string TextOf(const std::vector<prometheus::MetricFamily>& families) {
  std::string out;
  std::string labels;
  for (const prometheus::MetricFamily& family : families) {
    if (!family.help.empty()) {
      out.append("# HELP ").append(family.name).append(" ");
      AddEscaped(family.help, "\\\n", &out);
      out += '\n';
    }
    out.append("# TYPE ").append(family.name).append(" ").append(TypeName(family.type)) += '\n';
    for (const ClientMetric& sample : family.metric) {
      labels.clear();
      for (const ClientMetric::Label& label : sample.label) {
        labels.append(labels.empty() ? "" : ",").append(label.name).append("=\"");
        AddEscaped(label.value, "\\\"\n", &labels);
        labels += '"';
      }
      if (family.type == MetricType::Histogram) {
        AddHistogram(family.name, labels, sample.histogram, &out);
      } else {
        const bool counter = family.type == MetricType::Counter;
        AddSample(family.name, "", labels, nullptr,
                  counter ? sample.counter.value : sample.gauge.value, &out);
      }
    }
  }
  return out;
}

}  // namespace sluice::metrics
