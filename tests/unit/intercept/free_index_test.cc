// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "intercept/blocks/free_index.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace sluice {
namespace {

struct Entry {
  uint32_t size;
  uint32_t value;
};

// Random operations on two trees that share a store, against ordered maps.
TEST(FreeIndex, MatchesAnOrderedMap) {
  FreeIndex index;
  FreeTree trees[2] = {};
  std::map<uint32_t, Entry> models[2];
  std::mt19937 engine(7);
  const auto random = [&engine] { return static_cast<uint32_t>(engine()); };
  for (uint32_t step = 0; step < 200'000; ++step) {
    ASSERT_TRUE(index.Reserve(2));
    FreeTree& tree = trees[step % 2];
    auto& model = models[step % 2];
    const uint32_t most = (step / 20'000) % 2 == 0 ? 20 : 3000;  // one leaf; several levels
    FreePath path;
    if (model.size() < most && random() % 2 == 0) {
      const uint32_t key = random() % 1'000'000;
      if (model.count(key) != 0) continue;
      const uint32_t size = 1 + random() % 1000;
      index.Insert(tree, key, size, step);
      model[key] = {size, step};
    } else if (!model.empty()) {
      auto it = model.lower_bound(random() % 1'000'000);
      if (it == model.end()) it = model.begin();
      index.Find(tree, it->first, &path);
      ASSERT_EQ(index.ValueAt(tree, path), it->second.value);
      if (random() % 3 != 0 && it != model.begin() && random() % 2 == 0) {
        const auto before = std::prev(it);
        index.EraseNext(tree, before->first, it->first, &path);
        ASSERT_EQ(index.ValueAt(tree, path), before->second.value);
        model.erase(it);
      } else if (random() % 3 != 0) {
        index.Erase(tree, path);
        model.erase(it);
      } else {
        // Somewhere between its neighbours, with another size.
        const uint32_t low = it == model.begin() ? 0 : std::prev(it)->first + 1;
        const uint32_t high = std::next(it) == model.end() ? 1'000'000 : std::next(it)->first;
        const uint32_t key = low + random() % (high - low);
        const Entry entry{1 + random() % 1000, it->second.value};
        index.Change(tree, path, key, entry.size);
        model.erase(it);
        model[key] = entry;
      }
    }
    const uint32_t wanted = 1 + random() % 1100;
    auto it = model.begin();
    while (it != model.end() && it->second.size < wanted) ++it;
    ASSERT_EQ(index.FindEdge(tree, wanted, false, &path), it != model.end());
    if (it != model.end()) {
      ASSERT_EQ(index.ValueAt(tree, path), it->second.value);
    }
    auto last = model.rbegin();
    while (last != model.rend() && last->second.size < wanted) ++last;
    ASSERT_EQ(index.FindEdge(tree, wanted, true, &path), last != model.rend());
    if (last != model.rend()) {
      ASSERT_EQ(index.ValueAt(tree, path), last->second.value);
    }
  }
  index.FreeMemory();
}

// In one leaf that is the best fit of all; in more it is no worse than what FindEdge finds.
TEST(FreeIndex, FindsTheTightestOfALeaf) {
  FreeIndex index;
  std::mt19937 engine(11);
  const auto random = [&engine] { return static_cast<uint32_t>(engine()); };
  for (uint32_t round = 0; round < 400; ++round) {
    const bool one_leaf = round % 4 != 0;
    FreeTree tree{};
    std::map<uint32_t, uint32_t> sizes;
    for (uint32_t i = one_leaf ? 1 + random() % 64 : 500; i > 0; --i) {
      ASSERT_TRUE(index.Reserve(2));
      const uint32_t key = random() % 1'000'000;
      const uint32_t size = 1 + random() % 40;  // many of the same
      if (sizes.emplace(key, size).second) index.Insert(tree, key, size, size);
    }
    for (uint32_t wanted = 1; wanted <= 41; ++wanted) {
      uint32_t best = UINT32_MAX;
      for (const auto& [key, size] : sizes) {
        if (size >= wanted && size < best) best = size;
      }
      for (const bool last : {false, true}) {
        FreePath edge;
        FreePath fit;
        ASSERT_EQ(index.FindFit(tree, wanted, last, &fit), best != UINT32_MAX);
        if (!index.FindEdge(tree, wanted, last, &edge)) continue;
        const uint32_t found = index.ValueAt(tree, fit);
        ASSERT_GE(found, wanted);
        ASSERT_LE(found, index.ValueAt(tree, edge));
        if (!one_leaf) continue;
        ASSERT_EQ(found, best);
        // Of equal ones that nearest the edge.
        FreePath same;
        uint32_t nearest = 0;
        for (const auto& [key, size] : sizes) {
          if (size != best) continue;
          nearest = key;
          if (!last) break;
        }
        index.Find(tree, nearest, &same);
        ASSERT_EQ(fit.at[0], same.at[0]);
      }
    }
  }
  index.FreeMemory();
}

TEST(FreeIndex, TheLargestKeysAndSizesWork) {
  FreeIndex index;
  FreeTree tree{};
  ASSERT_TRUE(index.Reserve(2));
  index.Insert(tree, FreeIndex::kLimit - 1, FreeIndex::kLimit - 1, 5);
  FreePath path;
  ASSERT_TRUE(index.FindEdge(tree, FreeIndex::kLimit - 1, false, &path));
  EXPECT_EQ(index.ValueAt(tree, path), 5u);
  index.Erase(tree, path);
  EXPECT_FALSE(index.FindEdge(tree, 1, false, &path));
  index.FreeMemory();
}

}  // namespace
}  // namespace sluice
