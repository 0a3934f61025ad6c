// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <istream>
#include <string>
#include <string_view>
#include <vector>

#include "common/status.h"
#include "scheduler/record/record.h"

namespace sluice::eventlog {

/// One line of the event log, without a newline: `t_ns`, `event`, `job`, then every field of the
/// record that is not at its default, under its own name; extents as [[offset, length], ...] in
/// lease units.
std::string ToJson(const scheduler::Record& record);

/// The reverse. An error names the key and what is allowed.
Result<scheduler::Record> FromJson(std::string_view line);

/// A whole log; record i stands on line i + 1. An error names the line.
Result<std::vector<scheduler::Record>> ReadLog(std::istream& input);
Result<std::vector<scheduler::Record>> ReadLogFile(const std::string& path);

}  // namespace sluice::eventlog
