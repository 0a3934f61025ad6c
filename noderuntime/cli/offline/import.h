// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include "noderuntime/cli/offline/import_options.h"
#include "noderuntime/cli/offline/run.h"

namespace sluice::cli {

/// sluice import
Output RunImport(const ImportOptions& options);

}  // namespace sluice::cli
