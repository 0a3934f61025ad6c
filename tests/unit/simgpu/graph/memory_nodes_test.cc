// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "simgpu/graph/memory_nodes.h"

#include <gtest/gtest.h>

namespace sluice::simgpu {
namespace {

class MemoryNodesTest : public ::testing::Test {
 protected:
  CUgraphNode Add(std::vector<CUgraphNode> after, NodeWork work) {
    CUgraphNode node = nullptr;
    EXPECT_EQ(store_.Add(graph_, Behind(after), std::move(work), &node), CUDA_SUCCESS);
    return node;
  }
  static Links Behind(const std::vector<CUgraphNode>& nodes) {
    Links links;
    for (const CUgraphNode node : nodes) links.push_back({node, {}});
    return links;
  }
  CUgraphNode Alloc(std::vector<CUgraphNode> after, CUdeviceptr address, size_t bytes) {
    AllocWork work;
    work.params.dptr = address;
    work.params.bytesize = bytes;
    return Add(std::move(after), std::move(work));
  }
  CUgraphNode Free(std::vector<CUgraphNode> after, CUdeviceptr address) {
    return Add(std::move(after), FreeWork{address});
  }
  GraphStore store_;
  CUgraph graph_ = store_.NewGraph();
};

TEST_F(MemoryNodesTest, TellsWhatALaunchLeaves) {
  const CUgraphNode a = Alloc({}, 100, 8);
  Free({a}, 100);
  Alloc({}, 200, 8);
  Free({}, 300);
  const MemoryEffects effects = EffectsOf(graph_);
  EXPECT_EQ(effects.blocks, (std::set<CUdeviceptr>{100, 200}));
  EXPECT_EQ(effects.left, (std::set<CUdeviceptr>{200}));
  EXPECT_EQ(effects.foreign, (std::set<CUdeviceptr>{300}));
}

TEST_F(MemoryNodesTest, EachAllocationIsFreedOnce) {
  const CUgraphNode a = Alloc({}, 100, 8);
  EXPECT_TRUE(MayFree(graph_, 100));
  const CUgraphNode freed = Free({a}, 100);
  EXPECT_FALSE(MayFree(graph_, 100));
  Alloc({freed}, 100, 8);  // the block again
  EXPECT_TRUE(MayFree(graph_, 100));
  EXPECT_TRUE(MayFree(graph_, 500));
  Free({}, 500);
  EXPECT_FALSE(MayFree(graph_, 500));
}

TEST_F(MemoryNodesTest, ReusesTheSmallestBlockThatIsSurelyFree) {
  const CUgraphNode big = Alloc({}, 100, 64);
  const CUgraphNode small = Alloc({}, 200, 16);
  const CUgraphNode big_gone = Free({big}, 100);
  const CUgraphNode small_gone = Free({small}, 200);
  EXPECT_EQ(ReusableBlock(graph_, Behind({big_gone, small_gone}), 16), CUdeviceptr{200});
  EXPECT_EQ(ReusableBlock(graph_, Behind({big_gone, small_gone}), 17), CUdeviceptr{100});
  EXPECT_EQ(ReusableBlock(graph_, Behind({big_gone, small_gone}), 65), std::nullopt);
  EXPECT_EQ(ReusableBlock(graph_, Behind({small}), 16), std::nullopt);  // beside the frees
  const CUgraphNode again = Alloc({small_gone}, 200, 8);
  EXPECT_EQ(ReusableBlock(graph_, Behind({again}), 8), std::nullopt);  // in use
  const CUgraphNode again_gone = Free({again}, 200);
  EXPECT_EQ(ReusableBlock(graph_, Behind({again_gone}), 16), CUdeviceptr{200});
}

}  // namespace
}  // namespace sluice::simgpu
