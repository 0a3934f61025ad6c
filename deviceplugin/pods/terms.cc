// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "deviceplugin/pods/terms.h"

namespace sluice::pods {
namespace {

std::string GroupOf(const Pod& pod, const Terms& terms) {
  return terms.share_group.empty() ? pod.space : pod.space + "/" + terms.share_group;
}

/// What is understood, but what this version cannot do yet.
std::string CannotDo(const Terms& terms) {
  std::string all;
  if (terms.host_memory_bytes.has_value()) {
    all += "sluice.dev/host-memory: not available in this version; leave it out";
  }
  if (!terms.inject) {
    all += (all.empty() ? "" : "\n");
    all += "sluice.dev/inject 'false': not available in this version; allowed: true";
  }
  return all;
}

}  // namespace

GrantTerms TermsFor(const Pod& pod, const std::string& part, uint64_t granted_bytes, Trust trust,
                    const Ceilings& ceilings) {
  GrantTerms result;
  result.job = pod.space + "/" + pod.name + "/" + part;
  result.pod = pod.uid;
  result.limit_bytes = granted_bytes;
  std::vector<std::string> names;
  for (const Pod::Part& each : pod.parts) names.push_back(each.name);
  const Result<Terms> terms = TermsOf(pod.annotations, names, {part, granted_bytes});
  result.refusal = terms.ok() ? CannotDo(*terms) : terms.status().message();
  if (terms.ok() && result.refusal.empty()) {
    result.refusal = BeyondCeiling(ceilings, pod.space, *terms, granted_bytes);
  }
  if (!terms.ok()) {
    if (trust == Trust::kNamespace) result.group = pod.space;
    return result;
  }
  result.limit_bytes = terms->limit_bytes;
  result.priority = terms->priority;
  if (trust == Trust::kNamespace) result.group = GroupOf(pod, *terms);
  return result;
}

}  // namespace sluice::pods
