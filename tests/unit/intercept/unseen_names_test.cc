// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "intercept/lookup/unseen_names.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

namespace sluice {
namespace {

TEST(UnseenNames, EachIsNewOnce) {
  static UnseenNames names;
  EXPECT_TRUE(names.Add("cuMemAllocOfTomorrow"));
  EXPECT_FALSE(names.Add("cuMemAllocOfTomorrow"));
  EXPECT_TRUE(names.Add("cuMemFreeOfTomorrow"));
  EXPECT_FALSE(names.Add("cuMemFreeOfTomorrow"));
}

TEST(UnseenNames, EachIsNewToOneThread) {
  static UnseenNames names;
  std::atomic<int> first{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < 500; ++n) first += names.Add("cuName" + std::to_string(n)) ? 1 : 0;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(first, 500);
}

TEST(UnseenNames, MoreThanItHoldsAreNotNew) {
  static UnseenNames names;
  size_t added = 0;
  for (size_t n = 0; n < 2 * UnseenNames::kMost; ++n) {
    if (names.Add("cuName" + std::to_string(n))) ++added;
  }
  EXPECT_EQ(added, UnseenNames::kMost);
}

}  // namespace
}  // namespace sluice
