// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "common/metrics/address.h"

#include <gtest/gtest.h>

namespace sluice::metrics {
namespace {

TEST(IsAddress, WantsAnAddressAndAPort) {
  for (const char* good : {"127.0.0.1:9452", "0.0.0.0:0", "[::]:9452", "[::1]:65535"}) {
    EXPECT_TRUE(IsAddress(good)) << good;
  }
  for (const char* bad : {"", "9452", ":9452", "127.0.0.1", "127.0.0.1:", "a:b", "a:70000",
                          "a:123456", "::1:9452", "[]:9452", "[::1:9452", "a:-1"}) {
    EXPECT_FALSE(IsAddress(bad)) << bad;
  }
}

}  // namespace
}  // namespace sluice::metrics
