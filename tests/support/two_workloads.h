// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <string>
#include <vector>

#include "tests/support/test_bed.h"

namespace sluice::testing {

/// Two workloads with seeds of their own, which go on until `input` is closed, for 60 iterations at
/// least. `run_flags`: of sluice run; `options`: of the program.
cli::JobGroup StartTwoWorkloads(const TestBed& bed, const InputPipe& input,
                                const std::vector<std::string>& run_flags,
                                const std::vector<std::string>& options);

}  // namespace sluice::testing
