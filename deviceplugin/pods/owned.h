// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <string>
#include <vector>

namespace sluice::pods {

/// A container and the ids that kubelet lists it with. The same ids may be listed with several:
/// one that has ended is listed for a while beside the next one.
struct Owned {
  std::string container;  // NAMESPACE/POD/CONTAINER
  std::vector<std::string> ids;
};

}  // namespace sluice::pods
