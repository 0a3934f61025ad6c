// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "simgpu/graph/user_objects.h"

#include <gtest/gtest.h>

#include "simgpu/graph/graph.h"

namespace sluice::simgpu {
namespace {

TEST(UserObjectsTest, AreDueWithTheLastGraph) {
  GraphStore store;
  int thing = 0;
  const CUuserObject object = store.users.Create(
      &thing, [](void*) {}, 1);
  const CUgraph graph = store.NewGraph();
  graph->user_objects[object] = 1;  // the reference of its maker
  const CUgraph clone = store.Clone(graph);
  store.Destroy(graph);
  EXPECT_TRUE(store.users.TakeDue().empty());
  store.Destroy(clone);
  const auto due = store.users.TakeDue();
  ASSERT_EQ(due.size(), 1u);
  EXPECT_EQ(due[0].pointer, &thing);
  EXPECT_FALSE(IsLive(object));
  EXPECT_TRUE(store.users.TakeDue().empty());
}

}  // namespace
}  // namespace sluice::simgpu
