// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <string>

#include "common/status.h"
#include "common/unique_fd.h"

namespace sluice::noded {

/// A text of any length on its way to a client, as a file without a name.
Result<UniqueFd> TextFile(const std::string& text);

}  // namespace sluice::noded
