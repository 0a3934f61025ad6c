// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "common/bytes.h"
#include "tests/clients/client_runs.h"

namespace sluice::testing {
namespace {

/// saxpy through NVIDIA's Python packages, which check their own results. The parameter is the
/// program.
class Saxpy : public ClientTest, public ::testing::WithParamInterface<const char*> {
 protected:
  // Two arrays of 2.3 MiB live at once.
  static ClientRun Run() {
    return {.label = GetParam(),
            .command = {Python(), SourceFile(std::string("tests/clients/") + GetParam()),
                        "--elements", "600000", "--rounds", "8"}};
  }
};

TEST_P(Saxpy, AloneUnderSluiceItComputesTheSame) {
  RunHooked({Run()}, {RunUnhooked(Run())}, 32 * kMiB);
}

TEST_P(Saxpy, TwoShareAPoolThatDoesNotHoldBoth) {
  const Lines expected = RunUnhooked(Run());
  ExpectPeaksDoNotFit(RunHooked({Run(), Run()}, {expected, expected}, 8 * kMiB));
}

INSTANTIATE_TEST_SUITE_P(
    Clients, Saxpy, ::testing::Values("bindings_saxpy.py", "core_saxpy.py"), [](const auto& test) {
      return std::string(test.param).substr(0, std::string(test.param).find('_'));
    });

}  // namespace
}  // namespace sluice::testing
