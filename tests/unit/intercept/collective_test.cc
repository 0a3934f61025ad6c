// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "intercept/gate/collective.h"

#include <gtest/gtest.h>

namespace sluice::test {
namespace {

TEST(IsCollective, KnowsKernelsThatWaitForOtherGpus) {
  for (const char* name : {
           "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
           "_Z39ncclDevKernel_AllReduce_Sum_f32_RING_LL24ncclDevKernelArgsStorageILm4096EE",
           "_Z36ncclKernel_AllReduce_RING_LL_Sum_floatP11ncclDevComm",
           "ncclSymkDevKernel_AllGather_LL",
           "ncclSymDevKernel_AllReduce_AGxLL_R_sum_f32",
           "_ZN7mscclpp10allreduce4fullEPv",
           "_ZN4vllm25cross_device_reduce_1stageIfLi2EEEvPv",
           "nvshmemi_proxy_barrier",
       }) {
    EXPECT_TRUE(IsCollective(name)) << name;
  }
}

TEST(IsCollective, AndNoOthers) {
  for (const char* name : {
           "",
           "gemm",
           "oneRankReduce",  // NCCL's, of one rank
           "_Z13oneRankReduceI10FuncPreMulIfEEvPvS2_mmmm",
           "ncclFoo",
           "Kernel_of_a_nccl",  // not in this order
           "all_reduce_my_gradients",
       }) {
    EXPECT_FALSE(IsCollective(name)) << name;
  }
}

}  // namespace
}  // namespace sluice::test
