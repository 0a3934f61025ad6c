// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "simgpu/graph/graph.h"

#include <gtest/gtest.h>

namespace sluice::simgpu {
namespace {

class GraphStoreTest : public ::testing::Test {
 protected:
  CUgraphNode Add(std::vector<CUgraphNode> after, NodeWork work = EmptyWork{}) {
    Links links;
    for (const CUgraphNode node : after) links.push_back({node, {}});
    CUgraphNode node = nullptr;
    EXPECT_EQ(store_.Add(graph_, links, std::move(work), &node), CUDA_SUCCESS);
    return node;
  }
  std::vector<CUgraphNode> Order() {
    CUgraphNode cycle = nullptr;
    return TopologicalOrder(graph_, &cycle).value_or(std::vector<CUgraphNode>{});
  }
  GraphStore store_;
  CUgraph graph_ = store_.NewGraph();
};

TEST_F(GraphStoreTest, OrdersByEdgesThenByAge) {
  const CUgraphNode a = Add({});
  const CUgraphNode b = Add({});
  const CUgraphNode c = Add({});
  ASSERT_EQ(store_.AddEdge(graph_, c, a, {}), CUDA_SUCCESS);
  EXPECT_EQ(Order(), (std::vector<CUgraphNode>{b, c, a}));
}

TEST_F(GraphStoreTest, FindsANodeOfTheCycleAndNotOneBehindIt) {
  const CUgraphNode a = Add({});
  const CUgraphNode b = Add({a});
  const CUgraphNode c = Add({b});
  Add({c});
  ASSERT_EQ(store_.AddEdge(graph_, c, b, {}), CUDA_SUCCESS);
  CUgraphNode cycle = nullptr;
  EXPECT_FALSE(TopologicalOrder(graph_, &cycle));
  EXPECT_TRUE(cycle == b || cycle == c);
}

TEST_F(GraphStoreTest, KnowsWhatComesBefore) {
  const CUgraphNode a = Add({});
  const CUgraphNode b = Add({a});
  const CUgraphNode c = Add({b});
  const CUgraphNode apart = Add({});
  const Links end{{c, {}}};
  EXPECT_TRUE(IsBefore(a, end));
  EXPECT_TRUE(IsBefore(c, end));
  EXPECT_FALSE(IsBefore(apart, end));
  EXPECT_FALSE(IsBefore(a, {}));
}

TEST_F(GraphStoreTest, RefusesEdgesThatCannotBe) {
  const CUgraphNode a = Add({});
  const CUgraphNode b = Add({a});
  CUgraphEdgeData programmatic{};
  programmatic.type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
  programmatic.from_port = 1;
  EXPECT_EQ(store_.AddEdge(graph_, a, a, {}), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(store_.AddEdge(graph_, a, b, {}), CUDA_ERROR_INVALID_VALUE);  // there already
  EXPECT_EQ(store_.AddEdge(graph_, b, Add({}), programmatic), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(store_.RemoveEdge(graph_, b, a), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(store_.RemoveEdge(graph_, a, b), CUDA_SUCCESS);
  EXPECT_TRUE(a->dependents.empty());
  EXPECT_TRUE(b->dependencies.empty());
}

TEST_F(GraphStoreTest, GraphsWithMemoryNodesLoseNothing) {
  const CUgraphNode a = Add({}, AllocWork{});
  const CUgraphNode b = Add({a});
  EXPECT_EQ(graph_->memory_nodes, 1u);
  EXPECT_EQ(store_.Remove(b), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(store_.RemoveEdge(graph_, a, b), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(GraphStoreTest, ClonesEmbeddedGraphsAndTheirOrigins) {
  const CUgraph inner = store_.NewGraph();
  CUgraphNode leaf = nullptr;
  ASSERT_EQ(store_.Add(inner, {}, AllocWork{}, &leaf), CUDA_SUCCESS);
  const CUgraphNode child = Add({});
  store_.Adopt(child, inner);
  EXPECT_EQ(graph_->memory_nodes, 1u);
  const CUgraph clone = store_.Clone(graph_);
  EXPECT_EQ(clone->memory_nodes, 1u);
  EXPECT_EQ(GraphStore::FindCopy(clone, leaf), nullptr);
  const CUgraphNode copy = GraphStore::FindCopyDeep(clone, leaf);
  ASSERT_NE(copy, nullptr);
  EXPECT_NE(copy, leaf);
  store_.Destroy(graph_);
  EXPECT_FALSE(IsLive(leaf));  // with the graph it was embedded in
  EXPECT_TRUE(IsLive(copy));
}

TEST_F(GraphStoreTest, TheArgumentsOfACopiedKernelAreItsOwn) {
  KernelWork kernel;
  kernel.args = {1, 2, 3, 4};
  kernel.params = {kernel.args.data() + 2};
  const CUgraphNode node = Add({}, std::move(kernel));
  const CUgraph clone = store_.Clone(graph_);
  store_.Destroy(graph_);
  auto& copied = std::get<KernelWork>(clone->nodes[0]->work);
  EXPECT_EQ(copied.params[0], copied.args.data() + 2);
  EXPECT_FALSE(IsLive(node));
}

}  // namespace
}  // namespace sluice::simgpu
