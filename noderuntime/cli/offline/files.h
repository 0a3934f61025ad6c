// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <string>

#include "common/status.h"

namespace sluice::cli {

/// The whole file. An error names it.
Result<std::string> ReadWholeFile(const std::string& path);

/// Replaces the file or makes it. An error names it.
Status WriteWholeFile(const std::string& path, const std::string& text);

}  // namespace sluice::cli
