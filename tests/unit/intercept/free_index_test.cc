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
