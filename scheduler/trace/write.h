// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <string>

#include "scheduler/trace/trace.h"

namespace sluice::scheduler::trace {

/// A valid trace (trace.h) as text of the format `sluice-trace 1`. ParseTrace (parse.h) reads it
/// back as an equal trace.
std::string WriteTrace(const Trace& trace);

}  // namespace sluice::scheduler::trace
