// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace sluice::bench {

/// What figures were measured on: processor, cores, kernel, compiler, build.
nlohmann::json DescribeMachine();

/// The same on one line.
std::string MachineLine();

}  // namespace sluice::bench
