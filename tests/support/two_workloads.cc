// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "tests/support/two_workloads.h"

namespace sluice::testing {

cli::JobGroup StartTwoWorkloads(const TestBed& bed, const InputPipe& input,
                                const std::vector<std::string>& run_flags,
                                const std::vector<std::string>& options) {
  cli::JobGroup jobs;
  for (const char* seed : {"1", "2"}) {
    std::vector<std::string> command = {
        Program("WORKLOAD"), "--seed", seed, "--iterations", "60", "--until-eof", "--progress"};
    command.insert(command.end(), options.begin(), options.end());
    jobs.Add(bed.Start({.label = seed,
                        .command = command,
                        .run_flags = run_flags,
                        .input = input.read_end.get()}));
  }
  return jobs;
}

}  // namespace sluice::testing
