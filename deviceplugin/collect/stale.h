// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/grant/record.h"

namespace sluice::deviceplugin {

/// How long after a grant was made nothing may be known of who has it.
inline constexpr uint64_t kUnseenNs = 120'000'000'000;
inline constexpr uint64_t kOneAdmissionNs = 60'000'000'000;

/// Which grants are over, where nobody says which pods there are (with annotations,
/// pods/over.h decides). Nobody tells a device plugin that a container has ended; what shows it:
///
/// * One of its ids was allocated again, more than `kOneAdmission` later. Kubelet allocates for all
///   containers of a pod in one go, and an init container's ids once more for those after it; later
///   than that it is another pod's, so this one's has ended.
/// * One of its ids was listed by kubelet, and then none was in so many answers, one after the
///   other, of which none was empty: kubelet lists a container as long as its pod is there, but
///   nobody before it has read its pods after a start, and never those that end before the others
///   begin. What was never listed is over in the first way alone.
///
/// A plain value, for one thread.
class StaleBook {
 public:
  static constexpr unsigned kAnswers = 3;

  /// `listed`: the ids that kubelet lists; nothing: it did not answer.
  std::vector<std::string> Judge(const std::vector<GrantRecord>& grants,
                                 const std::optional<std::set<std::string>>& listed);

 private:
  std::map<std::string, unsigned> missed_;  // by grant that was listed: answers without it since
};

}  // namespace sluice::deviceplugin
