// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "common/gpu_numbers.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

TEST(ParseGpuNumbers, AllOrSomeInOrder) {
  EXPECT_EQ(*ParseGpuNumbers("all", "--gpus"), GpuNumbers());
  EXPECT_EQ(*ParseGpuNumbers("3,0,12", "--gpus"), GpuNumbers({0, 3, 12}));
}

TEST(ParseGpuNumbers, NamesWhatIsNone) {
  for (const char* bad : {"", "some", "0,", ",0", "0,0", "-1", "0 1", "1000", "all,0"}) {
    const Status refused = ParseGpuNumbers(bad, "--gpus").status();
    EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(refused.message(),
              "--gpus '" + std::string(bad) + "': allowed: all, or numbers such as 0,1");
  }
}

}  // namespace
}  // namespace sluice
