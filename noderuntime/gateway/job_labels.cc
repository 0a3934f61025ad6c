// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/gateway/job_labels.h"

#include <algorithm>

#include "common/metrics/family.h"

namespace sluice::gateway {
namespace {

bool IsName(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
  });
}

}  // namespace

JobLabels LabelsOf(const std::string& name) {
  const size_t first = name.find('/');
  const size_t second = first == std::string::npos ? first : name.find('/', first + 1);
  if (second != std::string::npos) {
    const std::string space = name.substr(0, first);
    const std::string pod = name.substr(first + 1, second - first - 1);
    const std::string container = name.substr(second + 1);
    if (IsName(space) && IsName(pod) && IsName(container)) {
      return {metrics::LabelValue(space), metrics::LabelValue(pod), metrics::LabelValue(container)};
    }
  }
  return {"", metrics::LabelValue(name), ""};
}

}  // namespace sluice::gateway
