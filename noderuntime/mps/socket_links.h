// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <string>

#include "common/status.h"

namespace sluice::mps {

/// Makes the folder `to` have the sockets and pipes that `from` has, each as a second name of the
/// same one, and nothing else that could be in the place of one. It is the same folder before and
/// after: a container that has it mounted sees what changes. A `from` that is not there has none;
/// a `to` that is not there is made (0755). Both are of one file system. What a container has put
/// into `to` is not followed. Errors are the system's.
Status LinkSockets(const std::string& from, const std::string& to);

}  // namespace sluice::mps
