// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// The tier on a driver, with jobs that are other processes and have the pool mapped themselves.
#include <unistd.h>

#include <memory>
#include <vector>

#include "noderuntime/gpu/cuda_device.h"
#include "noderuntime/hosttier/host_tier.h"
#include "tests/contract/fixture.h"
#include "tests/contract/lent_memory.h"

namespace sluice::hosttier {
namespace {

using contract::OtherProcess;
using Place = HostTier::Place;

constexpr uint64_t kUnit = 64 * 1024;
constexpr scheduler::Units kUnits = 16;
constexpr uint64_t kWrite = 1;
constexpr uint64_t kCheck = 2;

std::vector<uint32_t> Words(uint64_t seed) {
  std::vector<uint32_t> words(kUnits * kUnit / 4);
  uint32_t word = static_cast<uint32_t>(seed);
  for (uint32_t& each : words) each = word = word * 1664525 + 1013904223;
  return words;
}

/// A job: (command, seed, first unit, units), answered with 1 or 0 until it is told 0. What it
/// writes follows from the seed and the place.
int RunJob() {
  if (!contract::StartContext()) return 1;
  const CUmemGenericAllocationHandle handle = contract::ImportMemory(contract::kPassedFd);
  const contract::Mapping pool(handle, kUnits * kUnit);
  if (pool.result() != CUDA_SUCCESS) return 1;
  while (const uint64_t command = contract::ReadFromTest()) {
    const std::vector<uint32_t> words = Words(contract::ReadFromTest());
    const uint64_t first = contract::ReadFromTest() * kUnit;
    const uint64_t bytes = contract::ReadFromTest() * kUnit;
    const uint32_t* const wanted = words.data() + first / 4;
    bool good = false;
    if (command == kWrite) {
      good = cuMemcpyHtoD_v2(pool.address() + first, wanted, bytes) == CUDA_SUCCESS &&
             cuCtxSynchronize() == CUDA_SUCCESS;
    } else {
      std::vector<uint32_t> found(bytes / 4);
      good = cuMemcpyDtoH_v2(found.data(), pool.address() + first, bytes) == CUDA_SUCCESS &&
             found == std::vector<uint32_t>(wanted, wanted + bytes / 4);
    }
    contract::WriteToTest(good ? 1 : 0);
  }
  return 0;
}
const bool kJob = contract::AddRole("job", RunJob);

bool Ask(OtherProcess* job, uint64_t command, uint64_t seed, const scheduler::Extent& extent) {
  for (const uint64_t word : {command, seed, uint64_t{extent.offset}, uint64_t{extent.length}}) {
    job->Write(word);
  }
  return job->Read() == 1;
}

/// The end of the one copy that is under way.
HostTier::Finished End(HostTier* tier) {
  std::vector<HostTier::Finished> finished;
  EXPECT_TRUE(contract::Eventually([&] {
    finished = tier->Poll();
    return !finished.empty();
  }));
  return finished.empty() ? HostTier::Finished() : finished.front();
}

TEST(HostTierDriver, AJobFindsItsBytesAsTheyWereAlthoughAnotherHadItsUnits) {
  Result<std::unique_ptr<gpu::CudaDevice>> device = gpu::CudaDevice::Open(0);
  ASSERT_TRUE(device.ok()) << device.status().message();
  const Result<std::vector<UniqueFd>> handles = (*device)->CreateHandles(1, kUnits * kUnit);
  ASSERT_TRUE(handles.ok()) << handles.status().message();
  OtherProcess one("job", handles->front().get());
  OtherProcess two("job", handles->front().get());
  const Extents extents = {{1, 3}, {6, 1}, {9, 5}};
  const scheduler::Extent all = {0, kUnits};
  {
    HostTier tier(device->get(), kUnit, kUnits * kUnit);
    ASSERT_TRUE(Ask(&two, kWrite, 2, all));
    for (const scheduler::Extent& extent : extents) ASSERT_TRUE(Ask(&one, kWrite, 1, extent));
    ASSERT_TRUE(tier.Evict(1, extents).ok());
    EXPECT_TRUE(End(&tier).status.ok());
    ASSERT_EQ(tier.Where(1), Place::kAway);
    ASSERT_TRUE(Ask(&two, kWrite, 2, all)) << "lent to another";
    ASSERT_FALSE(Ask(&one, kCheck, 1, extents[0]));
    ASSERT_TRUE(tier.Restore(1).ok());
    EXPECT_TRUE(End(&tier).status.ok());
    EXPECT_EQ(tier.Where(1), Place::kNone);
    for (const scheduler::Extent& extent : extents) EXPECT_TRUE(Ask(&one, kCheck, 1, extent));
    for (const scheduler::Extent& rest :
         {scheduler::Extent{0, 1}, {4, 2}, {7, 2}, {14, kUnits - 14}}) {
      EXPECT_TRUE(Ask(&two, kCheck, 2, rest)) << "what was never the first job's";
    }
  }
  for (OtherProcess* job : {&one, &two}) {
    job->Write(0);
    EXPECT_EQ(job->Join(), 0);
  }
}

}  // namespace
}  // namespace sluice::hosttier
