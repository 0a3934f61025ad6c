// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <string>

#include "common/status.h"
#include "deviceplugin/pods/ceilings.h"

namespace sluice::deviceplugin {

/// A YAML map of namespaces, or "*", to maps with any of
///
///   maxMemoryLimit  quantity
///   maxPriority     -1000 to 1000
///   shareGroups     true, false
///
/// kInvalidArgument: every error of the whole text at once, one per line, each with its place, its
/// value and what is allowed.
Result<pods::Ceilings> ParseCeilings(const std::string& yaml);

/// The same of a file; kNotFound: it cannot be read.
Result<pods::Ceilings> ReadCeilings(const std::string& path);

}  // namespace sluice::deviceplugin
