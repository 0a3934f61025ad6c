// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/cli/job_lookup.h"

#include <gtest/gtest.h>

namespace sluice::cli {
namespace {

constexpr char kStatus[] = R"({"jobs": [{"id": 3, "name": "train --model a"},
    {"id": 4, "name": "ns/one/main"}, {"id": 5, "name": "ns/two/main"},
    {"id": 6, "name": "ns/two/side"}]})";

TEST(FindJob, ByNumberNameAndPod) {
  for (const auto& [job, id] :
       {std::pair("3", 3u), std::pair("train --model a", 3u), std::pair("ns/one/main", 4u),
        std::pair("ns/one", 4u), std::pair("ns/two/side", 6u)}) {
    const Result<uint32_t> found = FindJob(kStatus, job);
    ASSERT_TRUE(found.ok()) << job << ": " << found.status().message();
    EXPECT_EQ(*found, id) << job;
  }
}

TEST(FindJob, SaysWhatIsThere) {
  EXPECT_EQ(FindJob(kStatus, "ns/two").status().message(),
            "job 'ns/two': several are meant; allowed: 5 (ns/two/main), 6 (ns/two/side)");
  EXPECT_EQ(FindJob(kStatus, "7").status().message(),
            "job '7': there is none; allowed: 3 (train --model a), 4 (ns/one/main), "
            "5 (ns/two/main), 6 (ns/two/side)");
  EXPECT_EQ(FindJob(R"({"jobs": []})", "7").status().message(),
            "job '7': there is none; there is no job");
  EXPECT_EQ(FindJob("no", "7").status().code(), StatusCode::kUnavailable);
}

}  // namespace
}  // namespace sluice::cli
