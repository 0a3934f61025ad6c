// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <string>
#include <string_view>

#include "common/status.h"

namespace sluice::scheduler::text {

/// What is wrong with a text or a value: "<field>: <what is wrong, what is allowed>".
inline Status Fault(std::string_view field, const std::string& what) {
  return Status(StatusCode::kInvalidArgument, std::string(field) + ": " + what);
}

}  // namespace sluice::scheduler::text
