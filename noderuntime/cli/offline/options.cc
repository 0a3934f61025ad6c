// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/cli/offline/options.h"

#include <utility>

namespace sluice::cli {
namespace {

template <typename Options>
Result<OfflineOptions> Widened(Result<Options> options) {
  if (!options.ok()) return options.status();
  return OfflineOptions(*std::move(options));
}

}  // namespace

std::optional<Result<OfflineOptions>> OfflineCommands::Chosen() const {
  if (place_.chosen()) return Widened(place_.Options());
  if (simulate_.chosen()) return Widened(simulate_.Options());
  if (max_batch_.chosen()) return Widened(max_batch_.Options());
  if (profile_.chosen()) return Widened(profile_.Options());
  if (import_.chosen()) return Widened(import_.Options());
  return std::nullopt;
}

}  // namespace sluice::cli
