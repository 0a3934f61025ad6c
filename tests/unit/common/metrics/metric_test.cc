// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "common/metrics/metric.h"

#include <gtest/gtest.h>

namespace sluice::metrics {
namespace {

TEST(Describe, IsATableForEachGroup) {
  EXPECT_EQ(Describe({{"GPUs", "node, gpu", {{"a_bytes", Type::kGauge, "", "All of it"}}},
                      {"Jobs",
                       "id",
                       {{"b_total", Type::kCounter, "of, by", "How often"},
                        {"c_seconds", Type::kHistogram, "", "How long"}}}}),
            "## GPUs\n\n"
            "Labels of each: `node`, `gpu`.\n\n"
            "| metric | type | further labels | |\n|---|---|---|---|\n"
            "| `a_bytes` | gauge |  | All of it |\n"
            "\n## Jobs\n\n"
            "Labels of each: `id`.\n\n"
            "| metric | type | further labels | |\n|---|---|---|---|\n"
            "| `b_total` | counter | `of`, `by` | How often |\n"
            "| `c_seconds` | histogram |  | How long |\n");
}

}  // namespace
}  // namespace sluice::metrics
