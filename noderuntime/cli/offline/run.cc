// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/cli/offline/run.h"

#include <nlohmann/json.hpp>

#include "noderuntime/cli/launcher.h"
#include "noderuntime/cli/offline/format.h"
#include "noderuntime/cli/offline/import.h"
#include "noderuntime/cli/offline/max_batch.h"
#include "noderuntime/cli/offline/place.h"
#include "noderuntime/cli/offline/profile.h"
#include "noderuntime/cli/offline/simulate.h"

namespace sluice::cli {

Output Refused(const Status& status) {
  return {kExitUsage, "", "sluice: " + status.message() + "\n"};
}

Output DoNotFit(const std::string& why, bool json) {
  const std::string error = "they do not fit: " + why;
  Output output{1, "", "sluice: " + error + "\n"};
  if (json) output.out = JsonText({{"simulated", true}, {"error", error}});
  return output;
}

Output RunOffline(const OfflineOptions& options, const std::string& shipped) {
  if (const auto* import = std::get_if<ImportOptions>(&options)) return RunImport(*import);
  if (const auto* place = std::get_if<PlaceOptions>(&options)) return RunPlace(*place);
  if (const auto* batch = std::get_if<MaxBatchOptions>(&options)) {
    return RunMaxBatch(*batch, shipped);
  }
  if (const auto* profile = std::get_if<ProfileOptions>(&options)) {
    return RunProfile(*profile, shipped);
  }
  return RunSimulate(std::get<SimulateOptions>(options), shipped);
}

}  // namespace sluice::cli
