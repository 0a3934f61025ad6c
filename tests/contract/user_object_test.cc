// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <atomic>

#include "tests/contract/graph_fixture.h"

namespace sluice::contract {
namespace {

/// References that graphs hold to things of the program.
class UserObject : public GraphTest {
 protected:
  CUuserObject Create(unsigned references = 1) {
    CUuserObject object = nullptr;
    EXPECT_CU(cuUserObjectCreate(
        &object, &gone_, [](void* p) { static_cast<std::atomic<int>*>(p)->fetch_add(1); },
        references, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
    return object;
  }
  /// The destructor is called by another thread.
  bool Gone() {
    return Eventually([this] { return gone_.load() == 1; });
  }
  std::atomic<int> gone_{0};
};

TEST_F(UserObject, GoesWithItsLastReference) {
  const CUuserObject object = Create(2);
  ASSERT_CU(cuUserObjectRetain(object, 3));
  ASSERT_CU(cuUserObjectRelease(object, 4));
  EXPECT_EQ(gone_.load(), 0);
  ASSERT_CU(cuUserObjectRelease(object, 1));
  EXPECT_TRUE(Gone());
  CUuserObject none = nullptr;
  EXPECT_EQ(cuUserObjectCreate(
                &none, nullptr, [](void*) {}, 1, 0),
            CUDA_ERROR_INVALID_VALUE);
}

TEST_F(UserObject, IsKeptByGraphsAndTheirCopies) {
  const CUgraph graph = NewGraph();
  const CUuserObject object = Create();
  ASSERT_CU(cuGraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE));
  CUgraph clone = nullptr;
  ASSERT_CU(cuGraphClone(&clone, graph));
  const CUgraphExec exec = Instantiate(clone);
  ASSERT_CU(cuGraphDestroy(graph));
  ASSERT_CU(cuGraphDestroy(clone));
  LaunchAndWait(exec);
  EXPECT_EQ(gone_.load(), 0);
  ASSERT_CU(cuGraphExecDestroy(exec));
  EXPECT_TRUE(Gone());
}

TEST_F(UserObject, IsNotReleasedMoreOftenThanItWasRetained) {
  OnlySimulated("a real driver does not count, and then destroys what is still in use");
  const CUgraph graph = NewGraph();
  const CUuserObject object = Create();
  EXPECT_EQ(cuGraphReleaseUserObject(graph, object, 1), CUDA_ERROR_INVALID_VALUE);
  ASSERT_CU(cuUserObjectRelease(object, 1));
  EXPECT_TRUE(Gone());
  EXPECT_EQ(cuUserObjectRelease(object, 1), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(UserObject, IsReleasedByItsGraph) {
  const CUgraph graph = NewGraph();
  const CUuserObject object = Create();
  ASSERT_CU(cuGraphRetainUserObject(graph, object, 1, 0));
  ASSERT_CU(cuUserObjectRelease(object, 1));
  EXPECT_EQ(gone_.load(), 0);
  ASSERT_CU(cuGraphReleaseUserObject(graph, object, 1));
  EXPECT_TRUE(Gone());
  ASSERT_CU(cuGraphDestroy(graph));
}

TEST_F(UserObject, OutlivesALaunchUnderWay) {
  SharedWord gate;
  const CUgraph graph = NewGraph();
  CUdeviceptr flag = gate.device();
  AddKernel(graph, {}, "wait_flag", {&flag});
  ASSERT_CU(cuGraphRetainUserObject(graph, Create(), 1, CU_GRAPH_USER_OBJECT_MOVE));
  const CUgraphExec exec = Instantiate(graph);
  ASSERT_CU(cuGraphLaunch(exec, stream_));
  ASSERT_CU(cuGraphExecDestroy(exec));
  ASSERT_CU(cuGraphDestroy(graph));
  EXPECT_EQ(cuStreamQuery(stream_), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(gone_.load(), 0);
  gate.Store(1);
  EXPECT_TRUE(Gone());  // without any further call
  ASSERT_CU(cuStreamSynchronize(stream_));
}

TEST_F(UserObject, DestructorsMustNotCallTheDriver) {
  static std::atomic<int> result{-1};
  CUuserObject object = nullptr;
  ASSERT_CU(cuUserObjectCreate(
      &object, nullptr,
      [](void*) {
        CUgraph graph = nullptr;
        result.store(cuGraphCreate(&graph, 0));
      },
      1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
  ASSERT_CU(cuUserObjectRelease(object, 1));
  EXPECT_TRUE(Eventually([] { return result.load() == CUDA_ERROR_NOT_PERMITTED; }));
}

}  // namespace
}  // namespace sluice::contract
