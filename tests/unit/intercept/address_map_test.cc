// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "intercept/blocks/address_map.h"

#include <gtest/gtest.h>

#include <random>
#include <unordered_map>

namespace sluice {
namespace {

TEST(AddressMap, MatchesAMap) {
  AddressMap map;
  EXPECT_EQ(map.Find(3), AddressMap::kNotFound);
  EXPECT_EQ(map.Take(3), AddressMap::kNotFound);
  std::unordered_map<uint32_t, uint32_t> model;
  std::mt19937 engine(3);
  const auto random = [&engine] { return static_cast<uint32_t>(engine()); };
  for (uint32_t step = 0; step < 300'000; ++step) {
    const uint32_t key = (random() % 5000) * 64;  // regular strides, as addresses have
    if (model.count(key) == 0) {
      ASSERT_TRUE(map.Reserve(static_cast<uint32_t>(model.size()) + 1));
      ASSERT_EQ(map.Find(key), AddressMap::kNotFound);
      map.Insert(key, step);
      model[key] = step;
    } else {
      ASSERT_EQ(map.Find(key), model[key]);
      if (random() % 2 == 0) {
        ASSERT_EQ(map.Take(key), model[key]);
        model.erase(key);
        ASSERT_EQ(map.Take(key), AddressMap::kNotFound);
      }
    }
  }
  for (const auto& [key, value] : model) ASSERT_EQ(map.Find(key), value);
  map.FreeMemory();
}

}  // namespace
}  // namespace sluice
