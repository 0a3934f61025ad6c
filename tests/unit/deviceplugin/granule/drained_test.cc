// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "deviceplugin/granule/drained.h"

#include <gtest/gtest.h>

#include "common/bytes.h"

namespace sluice::deviceplugin {
namespace {

TEST(Drained, AllIdsOfTheGpuButThoseInUse) {
  const Result<DeviceIds> ids = DeviceIds::Make({{"GPU-a", 3 * kGiB}, {"GPU-b", 2 * kGiB}}, kGiB);
  ASSERT_TRUE(ids.ok());
  const std::string used = ids->IdOf({0, 1});
  const std::vector<GrantRecord> grants = {{"", "GPU-a", kGiB, 1, {used}}};
  EXPECT_TRUE(Drained(*ids, {}, grants).empty());
  EXPECT_EQ(Drained(*ids, {"GPU-a"}, grants),
            (std::set<std::string>{ids->IdOf({0, 0}), ids->IdOf({0, 2})}));
  EXPECT_EQ(Drained(*ids, {"GPU-b", "GPU-gone"}, grants),
            (std::set<std::string>{ids->IdOf({1, 0}), ids->IdOf({1, 1})}));
}

}  // namespace
}  // namespace sluice::deviceplugin
