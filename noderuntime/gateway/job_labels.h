// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <string>

namespace sluice::gateway {

/// Whose job it is, as labels name it.
struct JobLabels {
  std::string space;  // namespace; empty outside a cluster
  std::string pod;
  std::string container;
  friend bool operator==(const JobLabels&, const JobLabels&) = default;
};

/// Of a job's name: NAMESPACE/POD/CONTAINER, each as Kubernetes names things, or all of it as the
/// pod. It is what users chose: LabelValue has been at all of them.
JobLabels LabelsOf(const std::string& name);

}  // namespace sluice::gateway
