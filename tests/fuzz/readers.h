// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "scheduler/place/offline/instance.h"
#include "scheduler/trace/snapshot/import.h"
#include "scheduler/trace/trace.h"

/// What must hold whatever the readers of scheduler/ are given. Each says what does not.
namespace sluice::fuzz {

/// A text that is read is written back byte for byte; a fault is one line that names a line of it.
std::optional<std::string> JudgeParse(std::string_view text,
                                      const Result<scheduler::trace::Trace>& parsed);

/// What is imported is a valid trace; a fault is one line, and a byte that it names exists.
std::optional<std::string> JudgeImport(std::string_view bytes,
                                       const Result<scheduler::trace::SnapshotImport>& imported);

/// A table that is read comes back equal, with offsets beside it; what is in it can be placed, and
/// is. A fault is one line that names a line of it.
std::optional<std::string> JudgeTable(std::string_view text,
                                      const Result<scheduler::Instance>& read);

/// Reads the input and judges.
std::optional<std::string> PlayTrace(std::string_view text);
std::optional<std::string> PlaySnapshot(std::string_view bytes);
std::optional<std::string> PlayTable(std::string_view text);

}  // namespace sluice::fuzz
