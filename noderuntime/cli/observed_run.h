// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <string>

#include "noderuntime/cli/launcher.h"

namespace sluice::cli {

/// Where the trace goes: as asked for, else PROGRAM.trace in `folder`, or the first of
/// PROGRAM.2.trace, PROGRAM.3.trace and so on that is not there yet.
std::string TraceFile(const RunOptions& options, const std::string& folder = "");

/// sluice run --observe: the program runs as ever, as a child; when it has ended, by itself or by
/// a signal, the iteration that the daemon recorded is written and what sharing would bring is said
/// on stderr. Signals that somebody sends to this process go to the program; those of the terminal
/// reach it anyway. Returns the program's exit code, whatever became of the recording. A trace that
/// was asked for and exists already is not replaced: kExitUsage, before anything is started.
int RunObserved(const RunOptions& options, const Layout& layout);

}  // namespace sluice::cli
