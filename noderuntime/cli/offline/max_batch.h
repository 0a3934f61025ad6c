// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include "noderuntime/cli/offline/max_batch_options.h"
#include "noderuntime/cli/offline/run.h"

namespace sluice::cli {

/// sluice max-batch. Different jobs grow together, each by the same part of the largest batch that
/// it could have alone. Exit code 1: they do not fit at any batch.
Output RunMaxBatch(const MaxBatchOptions& options, const std::string& shipped);

}  // namespace sluice::cli
