// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <string>

namespace sluice::cli {

/// Why the dynamic loader will not put the library into this program, as far as its file tells; for
/// a script, into its interpreter. Empty: nothing speaks against it. Such a program would use the
/// GPU with no limit and without being seen.
std::string WhyNotPreloaded(const std::string& file);

/// The file that a shell would execute for `program`, looked up along `path`; empty: none.
std::string ProgramFile(const std::string& program, const std::string& path);

}  // namespace sluice::cli
