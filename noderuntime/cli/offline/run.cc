// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/cli/offline/run.h"

#include "noderuntime/cli/launcher.h"
#include "noderuntime/cli/offline/place.h"

namespace sluice::cli {

Output Refused(const Status& status) {
  return {kExitUsage, "", "sluice: " + status.message() + "\n"};
}

Output RunOffline(const OfflineOptions& options) {
  return RunPlace(std::get<PlaceOptions>(options));
}

}  // namespace sluice::cli
