// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <optional>
#include <string>
#include <variant>

#include "common/status.h"
#include "noderuntime/cli/offline/import_options.h"
#include "noderuntime/cli/offline/max_batch_options.h"
#include "noderuntime/cli/offline/place_options.h"
#include "noderuntime/cli/offline/profile_options.h"
#include "noderuntime/cli/offline/simulate_options.h"

namespace CLI {
class App;
}

/// Commands that need no daemon (README.md beside this): their part of the command line.
namespace sluice::cli {

using OfflineOptions =
    std::variant<ImportOptions, MaxBatchOptions, PlaceOptions, ProfileOptions, SimulateOptions>;

/// Their names, as in a list of what is allowed.
inline constexpr char kOfflineCommands[] = "place, simulate, max-batch, profile, import";

/// Adds the commands to a command line that is yet to be read.
class OfflineCommands {
 public:
  explicit OfflineCommands(CLI::App& app)
      : place_(app), simulate_(app), max_batch_(app), profile_(app), import_(app) {}

  /// After it was read: the one that was chosen, or what is wrong with it; nothing when it was none
  /// of them.
  std::optional<Result<OfflineOptions>> Chosen() const;

 private:
  PlaceFlags place_;
  SimulateFlags simulate_;
  MaxBatchFlags max_batch_;
  ProfileFlags profile_;
  ImportFlags import_;
};

}  // namespace sluice::cli
