// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "simgpu/graph/update.h"

#include <gtest/gtest.h>

namespace sluice::simgpu {
namespace {

class UpdateTest : public ::testing::Test {
 protected:
  CUgraphNode Add(CUgraph graph, std::vector<CUgraphNode> after, NodeWork work = EmptyWork{}) {
    Links links;
    for (const CUgraphNode node : after) links.push_back({node, {}});
    CUgraphNode node = nullptr;
    EXPECT_EQ(store_.Add(graph, links, std::move(work), &node), CUDA_SUCCESS);
    return node;
  }
  CUgraphExecUpdateResult Compare() { return PairForUpdate(ours_, theirs_, &pairs_).result; }
  GraphStore store_;
  CUgraph ours_ = store_.NewGraph();
  CUgraph theirs_ = store_.NewGraph();
  NodePairs pairs_;
};

TEST_F(UpdateTest, PairsByEdgesNotByAge) {
  const CUgraphNode a = Add(ours_, {});
  const CUgraphNode b = Add(ours_, {a});
  const CUgraphNode late = Add(theirs_, {});
  const CUgraphNode first = Add(theirs_, {});
  ASSERT_EQ(store_.AddEdge(theirs_, first, late, {}), CUDA_SUCCESS);
  ASSERT_EQ(Compare(), CU_GRAPH_EXEC_UPDATE_SUCCESS);
  EXPECT_EQ(pairs_, (NodePairs{{b, late}, {a, first}}));
}

TEST_F(UpdateTest, NamesTheEdgeThatDoesNotMatch) {
  const CUgraphNode a = Add(ours_, {});
  const CUgraphNode b = Add(ours_, {});
  Add(ours_, {a, b});
  Add(ours_, {a});
  const CUgraphNode x = Add(theirs_, {});
  const CUgraphNode y = Add(theirs_, {});
  Add(theirs_, {x, y});
  const CUgraphNode end = Add(theirs_, {y});
  const CUgraphExecUpdateResultInfo info = PairForUpdate(ours_, theirs_, &pairs_);
  EXPECT_EQ(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
  EXPECT_EQ(info.errorNode, end);
  EXPECT_EQ(info.errorFromNode, y);
}

TEST_F(UpdateTest, SaysWhyWorkCannotChange) {
  int contexts[2];
  KernelWork kernel;
  kernel.context = reinterpret_cast<Context*>(&contexts[0]);
  Add(ours_, {}, kernel);
  kernel.context = reinterpret_cast<Context*>(&contexts[1]);
  const CUgraphNode node = Add(theirs_, {}, kernel);
  const CUgraphExecUpdateResultInfo info = PairForUpdate(ours_, theirs_, &pairs_);
  EXPECT_EQ(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE);
  EXPECT_EQ(info.errorNode, node);
}

TEST_F(UpdateTest, ACopyKeepsItsKindsOfMemory) {
  CopyWork copy;
  copy.box.srcMemoryType = copy.box.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.box.Height = copy.box.Depth = 1;
  CopyWork other = copy;
  other.box.srcDevice = 5;
  EXPECT_TRUE(CopyMayBecome(copy, other));
  other.box.srcMemoryType = CU_MEMORYTYPE_HOST;
  EXPECT_FALSE(CopyMayBecome(copy, other));
  Add(ours_, {}, copy);
  Add(theirs_, {}, other);
  EXPECT_EQ(Compare(), CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED);
}

TEST_F(UpdateTest, LooksIntoEmbeddedGraphs) {
  const auto embed = [&](CUgraph graph, NodeWork work) {
    const CUgraph inner = store_.NewGraph();
    const CUgraphNode leaf = Add(inner, {}, std::move(work));
    store_.Adopt(Add(graph, {}), inner);
    return leaf;
  };
  embed(ours_, EmptyWork{});
  const CUgraphNode host = embed(theirs_, HostWork{});
  const CUgraphExecUpdateResultInfo info = PairForUpdate(ours_, theirs_, &pairs_);
  EXPECT_EQ(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED);
  EXPECT_EQ(info.errorNode, host);
}

}  // namespace
}  // namespace sluice::simgpu
