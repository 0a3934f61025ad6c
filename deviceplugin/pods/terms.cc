// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "deviceplugin/pods/terms.h"

namespace sluice::pods {
namespace {

std::string GroupOf(const Pod& pod, const Terms& terms) {
  return terms.share_group.empty() ? pod.space : pod.space + "/" + terms.share_group;
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
  result.refusal = terms.ok() ? BeyondCeiling(ceilings, pod.space, *terms, granted_bytes)
                              : terms.status().message();
  if (!terms.ok()) {
    if (trust == Trust::kNamespace) result.group = pod.space;
    return result;
  }
  // What is refused is nobody's to give, nor to keep room for.
  if (result.refusal.empty()) result.limit_bytes = terms->limit_bytes;
  result.priority = terms->priority;
  result.host_memory_bytes = terms->host_memory_bytes;
  result.inject = terms->inject;
  if (trust == Trust::kNamespace) result.group = GroupOf(pod, *terms);
  return result;
}

}  // namespace sluice::pods
