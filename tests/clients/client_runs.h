// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "scheduler/audit/audit.h"
#include "tests/support/test_bed.h"

namespace sluice::testing {

/// A program that nobody here wrote, started as its users start it.
struct ClientRun {
  std::string label;
  std::vector<std::string> command;
  std::vector<std::pair<std::string, std::string>> environment = {};
  std::vector<std::string> run_flags = {};  // of `sluice run`
};

using Lines = std::vector<std::string>;

/// Skips each of its tests, aloud, where the pinned programs are not installed (`scripts/check
/// clients` installs them).
class ClientTest : public ::testing::Test {
 protected:
  void SetUp() override;
};

/// The interpreter with the pinned packages; Debian's ffmpeg; the compiler of tinygrad's CPU
/// backend.
std::string Python();
std::string Ffmpeg();
std::string Clang();
/// A file of the repository.
std::string SourceFile(const std::string& path);

/// What each program prints without Sluice, each on a large simulated GPU of its own, side by side.
/// A program that was run before under the same label is not run again. Fails the test when one
/// fails.
std::vector<Lines> RunUnhooked(const std::vector<ClientRun>& runs);
Lines RunUnhooked(const ClientRun& run);

/// The programs under Sluice, in one pool, started at once, so that the first one compiles while
/// the second waits to begin: each prints what `expected` says for it, no kernel touches what its
/// program does not hold, and the event log stands up to the audit.
scheduler::AuditReport RunHooked(const std::vector<ClientRun>& runs,
                                 const std::vector<Lines>& expected, uint64_t pool_bytes);

/// Fails the test unless the peaks of the log's programs do not fit together into its pool.
void ExpectPeaksDoNotFit(const scheduler::AuditReport& report);

}  // namespace sluice::testing
