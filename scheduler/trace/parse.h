// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <string_view>

#include "common/status.h"
#include "scheduler/trace/trace.h"

namespace sluice::scheduler::trace {

/// Reads a whole text of the format `sluice-trace 1` (data/traces/README.md) and checks every rule
/// of it. A fault is kInvalidArgument and one line: "line 12: <field>: <what is wrong, what is
/// allowed>"; what is missing at the end names the last line. Time and memory are linear in the
/// text. Whatever is read, WriteTrace (write.h) gives back byte for byte.
Result<Trace> ParseTrace(std::string_view text);

}  // namespace sluice::scheduler::trace
