// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "tests/unit/intercept/client_fixture.h"

namespace sluice::test {
namespace {

using protocol::Family;

/// Physical memory behind parts of sparse arrays.
class ClientTiles : public ClientTest {
 protected:
  CUmemGenericAllocationHandle Create(size_t bytes) {
    CUmemAllocationProp prop{};
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    prop.allocFlags.usage = 1;  // for tiles
    CUmemGenericAllocationHandle handle = 0;
    EXPECT_EQ(client->CreatePhysical(&handle, bytes, &prop, 0), CUDA_SUCCESS);
    return handle;
  }
  CUresult Map(CUarray array, CUmemGenericAllocationHandle handle, CUresult answer = CUDA_SUCCESS) {
    CUarrayMapInfo parts[2] = {};
    for (CUarrayMapInfo& part : parts) {
      part.resource.array = array;
      part.memOperationType = CU_MEM_OPERATION_TYPE_MAP;
      part.memHandle.memHandle = handle;
    }
    parts[1].subresource.sparseLevel.offsetX = 64;
    return client->MapArrays(parts, 2, [=] { return answer; });
  }
  CUresult Destroy(CUarray array, CUresult answer = CUDA_SUCCESS) {
    return client->DestroyArray(array, [=] { return answer; });
  }
  uint64_t Physical(uint64_t expected) { return daemon->WaitCharged(Family::kPhysical, expected); }

  CUarray array_ = reinterpret_cast<CUarray>(0x7100);
  CUarray other_ = reinterpret_cast<CUarray>(0x7200);
};

TEST_F(ClientTiles, KeepTheirMemoryChargedUntilTheirArrayIsDestroyed) {
  const auto handle = Create(4096);
  EXPECT_EQ(Map(array_, handle), CUDA_SUCCESS);
  EXPECT_EQ(Map(array_, handle), CUDA_SUCCESS);
  EXPECT_EQ(Map(other_, handle), CUDA_SUCCESS);
  EXPECT_EQ(client->ReleasePhysical(handle), CUDA_SUCCESS);
  EXPECT_EQ(Destroy(other_), CUDA_SUCCESS);
  EXPECT_EQ(Destroy(array_, CUDA_ERROR_INVALID_HANDLE), CUDA_ERROR_INVALID_HANDLE);
  AllocAsync(512);
  EXPECT_EQ(daemon->Count(protocol::FrameType::kUncharge), 0u) << "the first array shows it";
  EXPECT_EQ(Destroy(array_), CUDA_SUCCESS);
  EXPECT_EQ(Physical(0), 0u);
}

TEST_F(ClientTiles, EndWithTheirContext) {
  const auto handle = Create(4096);
  const auto kept = Create(8192);
  EXPECT_EQ(Map(array_, handle), CUDA_SUCCESS);
  EXPECT_EQ(client->ReleasePhysical(handle), CUDA_SUCCESS);
  EXPECT_EQ(Physical(4096 + 8192), 4096u + 8192u);
  EXPECT_EQ(client->ContextDestroy(driver.context), CUDA_SUCCESS);
  EXPECT_EQ(Physical(8192), 8192u);
  EXPECT_EQ(client->ReleasePhysical(kept), CUDA_SUCCESS);
  EXPECT_EQ(Physical(0), 0u);
}

TEST_F(ClientTiles, AMappingThatTheDriverRefusesHoldsNothing) {
  const auto handle = Create(4096);
  EXPECT_EQ(Map(array_, handle, CUDA_ERROR_INVALID_VALUE), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(client->ReleasePhysical(handle), CUDA_SUCCESS);
  EXPECT_EQ(Physical(0), 0u);
}

TEST_F(ClientTiles, AnArrayThatComesAgainIsAnotherOne) {
  const auto handle = Create(4096);
  const auto next = Create(8192);
  EXPECT_EQ(Map(array_, handle), CUDA_SUCCESS);
  EXPECT_EQ(client->ReleasePhysical(handle), CUDA_SUCCESS);
  // Made by another thread before the call that destroyed the old one returned.
  EXPECT_EQ(client->DestroyArray(array_, [&] { return Map(array_, next); }), CUDA_SUCCESS);
  EXPECT_EQ(client->ReleasePhysical(next), CUDA_SUCCESS);
  EXPECT_EQ(Physical(8192), 8192u);
  EXPECT_EQ(Destroy(array_), CUDA_SUCCESS);
  EXPECT_EQ(Physical(0), 0u);
}

}  // namespace
}  // namespace sluice::test
