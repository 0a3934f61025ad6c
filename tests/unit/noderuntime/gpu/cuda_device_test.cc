// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// What the daemon does to its pool by the driver, as its jobs see it in mappings of their own.
#include "noderuntime/gpu/cuda_device.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <vector>

#include "tests/contract/fixture.h"
#include "tests/contract/lent_memory.h"

namespace sluice::gpu {
namespace {

using contract::Inject;

constexpr uint64_t kHandle = 256 * 1024;
constexpr uint32_t kHandles = 3;

class CudaDeviceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    contract::OnlySimulated("it makes calls of the driver fail");
    ASSERT_TRUE(contract::StartContext());
    Result<std::unique_ptr<CudaDevice>> device = CudaDevice::Open(0);
    ASSERT_TRUE(device.ok()) << device.status().message();
    device_ = std::move(*device);
    Result<std::vector<UniqueFd>> handles = device_->CreateHandles(kHandles, kHandle);
    ASSERT_TRUE(handles.ok()) << handles.status().message();
    handles_ = std::move(*handles);
    for (uint32_t i = 0; i < kHandles; ++i) {
      imported_.push_back(contract::ImportMemory(handles_[i].get()));
      client_.push_back(std::make_unique<contract::Mapping>(imported_.back(), kHandle));
      ASSERT_EQ(client_.back()->result(), CUDA_SUCCESS);
    }
    Result<std::byte*> host = device_->AllocateHost(kHandles * kHandle);
    ASSERT_TRUE(host.ok()) << host.status().message();
    host_ = *host;
  }
  void TearDown() override {
    Inject("");
    if (device_ != nullptr) device_->FreeHost(host_);
    client_.clear();
    for (const CUmemGenericAllocationHandle handle : imported_) cuMemRelease(handle);
  }

  /// As a job writes and reads: through its own mapping.
  void WriteAsClient(const std::vector<std::byte>& bytes) {
    for (uint32_t i = 0; i < kHandles; ++i) {
      ASSERT_EQ(cuMemcpyHtoD_v2(client_[i]->address(), bytes.data() + i * kHandle, kHandle),
                CUDA_SUCCESS);
    }
  }
  std::vector<std::byte> ReadAsClient() {
    std::vector<std::byte> bytes(kHandles * kHandle);
    for (uint32_t i = 0; i < kHandles; ++i) {
      EXPECT_EQ(cuMemcpyDtoH_v2(bytes.data() + i * kHandle, client_[i]->address(), kHandle),
                CUDA_SUCCESS);
    }
    return bytes;
  }
  static std::vector<std::byte> Pattern(uint32_t seed) {
    std::vector<std::byte> bytes(kHandles * kHandle);
    for (size_t i = 0; i < bytes.size(); ++i) {
      seed = seed * 1664525 + 1013904223;
      bytes[i] = static_cast<std::byte>(seed >> 24);
    }
    return bytes;
  }
  CopyTicket Start(CopyDirection direction, const std::vector<CopySpan>& spans) {
    const Result<CopyTicket> ticket = device_->StartCopies(direction, spans);
    EXPECT_TRUE(ticket.ok()) << ticket.status().message();
    return ticket.ok() ? *ticket : 0;
  }
  void AwaitEnd(CopyTicket ticket) {
    ASSERT_TRUE(contract::Eventually([&] {
      const Result<bool> ended = device_->CopiesEnded(ticket);
      EXPECT_TRUE(ended.ok()) << ended.status().message();
      return !ended.ok() || *ended;
    }));
  }

  std::unique_ptr<CudaDevice> device_;
  std::vector<UniqueFd> handles_;
  std::vector<CUmemGenericAllocationHandle> imported_;
  std::vector<std::unique_ptr<contract::Mapping>> client_;
  std::byte* host_ = nullptr;
};

TEST_F(CudaDeviceTest, CopiesWhatClientsHaveInThePoolAndBack) {
  const std::vector<std::byte> before = Pattern(1);
  WriteAsClient(before);
  // Over the border of two handles, and of odd sizes.
  const std::vector<CopySpan> spans = {{12, host_ + 100, 333},
                                       {kHandle - 4096, host_ + 4096, 3 * 4096 + 7}};
  AwaitEnd(Start(CopyDirection::kToHost, spans));
  for (const CopySpan& span : spans) {
    EXPECT_EQ(std::memcmp(span.host, before.data() + span.offset, span.bytes), 0);
  }
  std::vector<std::byte> expected = Pattern(2);
  WriteAsClient(expected);
  AwaitEnd(Start(CopyDirection::kToPool, spans));
  for (const CopySpan& span : spans) {
    std::memcpy(expected.data() + span.offset, before.data() + span.offset, span.bytes);
  }
  EXPECT_EQ(ReadAsClient(), expected) << "the spans, and nothing beside them";
}

TEST_F(CudaDeviceTest, WaitingForCopiesIsEnough) {
  const std::vector<std::byte> before = Pattern(3);
  std::memcpy(host_, before.data(), before.size());
  const CopyTicket ticket = Start(CopyDirection::kToPool, {{0, host_, before.size()}});
  EXPECT_TRUE(device_->WaitForCopies(ticket).ok());
  EXPECT_EQ(ReadAsClient(), before);
  EXPECT_EQ(device_->WaitForCopies(ticket).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(device_->CopiesEnded(ticket).status().code(), StatusCode::kInvalidArgument);
}

TEST_F(CudaDeviceTest, RefusesCopiesBeyondThePool) {
  for (const CopySpan& span :
       {CopySpan{kHandles * kHandle, host_, 1}, CopySpan{1, host_, kHandles * kHandle},
        CopySpan{~uint64_t{0}, host_, 2}, CopySpan{8, host_, ~uint64_t{0}}}) {
    EXPECT_EQ(device_->StartCopies(CopyDirection::kToHost, {span}).status().code(),
              StatusCode::kInvalidArgument);
  }
}

TEST_F(CudaDeviceTest, CopiesUnderWayAreNoError) {
  ASSERT_EQ(Inject("cuEventQuery@1=CUDA_ERROR_NOT_READY"), 0);
  const CopyTicket ticket = Start(CopyDirection::kToHost, {{0, host_, kHandle}});
  const Result<bool> ended = device_->CopiesEnded(ticket);
  ASSERT_TRUE(ended.ok()) << ended.status().message();
  EXPECT_FALSE(*ended);
  AwaitEnd(ticket);
}

TEST_F(CudaDeviceTest, AFailureOfTheDriverIsToldOnce) {
  ASSERT_EQ(Inject("cuEventQuery@1=CUDA_ERROR_LAUNCH_FAILED"), 0);
  const CopyTicket ticket = Start(CopyDirection::kToHost, {{0, host_, kHandle}});
  const Status failed = device_->CopiesEnded(ticket).status();
  EXPECT_EQ(failed.message(), "copy: CUDA_ERROR_LAUNCH_FAILED");
  EXPECT_EQ(device_->CopiesEnded(ticket).status().code(), StatusCode::kInvalidArgument);
  AwaitEnd(Start(CopyDirection::kToHost, {{0, host_, kHandle}}));
}

TEST_F(CudaDeviceTest, CopiesThatStartByHalvesAreNotUnderWay) {
  for (const char* rule :
       {"cuMemcpyDtoHAsync*@2=CUDA_ERROR_UNKNOWN", "cuEventRecord@1=CUDA_ERROR_UNKNOWN",
        "cuEventCreate@1=CUDA_ERROR_UNKNOWN"}) {
    ASSERT_EQ(Inject(rule), 0);
    const std::vector<CopySpan> spans = {{0, host_, kHandle}, {kHandle, host_ + kHandle, kHandle}};
    EXPECT_EQ(device_->StartCopies(CopyDirection::kToHost, spans).status().code(),
              StatusCode::kInternal)
        << rule;
    AwaitEnd(Start(CopyDirection::kToHost, spans));
  }
}

TEST_F(CudaDeviceTest, HostMemoryThatTheMachineLacksIsResourceExhausted) {
  ASSERT_EQ(Inject("cuMemHostAlloc=CUDA_ERROR_OUT_OF_MEMORY"), 0);
  const Status status = device_->AllocateHost(3 * 1024 * 1024).status();
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(status.message(), "3.0 MiB of pinned host memory: CUDA_ERROR_OUT_OF_MEMORY");
}

class CudaDeviceMapping : public CudaDeviceTest,
                          public ::testing::WithParamInterface<const char*> {};

// A pool that was mapped by halves was taken for a mapped one ever after.
TEST_P(CudaDeviceMapping, APoolThatCouldNotBeMappedIsMappedTheNextTime) {
  const std::vector<std::byte> before = Pattern(4);
  WriteAsClient(before);
  ASSERT_EQ(Inject(GetParam()), 0);
  EXPECT_FALSE(device_->Poison(0, kHandle).ok());
  EXPECT_EQ(ReadAsClient(), before);
  const Status second = device_->Poison(0, kHandles * kHandle);
  EXPECT_TRUE(second.ok()) << second.message();
  const std::vector<std::byte> after = ReadAsClient();
  for (size_t i = 0; i < after.size(); i += sizeof kPoison) {
    ASSERT_EQ(std::memcmp(after.data() + i, &kPoison, sizeof kPoison), 0) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Each, CudaDeviceMapping,
                         ::testing::Values("cuMemAddressReserve@1=CUDA_ERROR_OUT_OF_MEMORY",
                                           "cuMemImportFromShareableHandle@3=CUDA_ERROR_UNKNOWN",
                                           "cuMemMap@2=CUDA_ERROR_OUT_OF_MEMORY",
                                           "cuMemSetAccess@1=CUDA_ERROR_UNKNOWN"));

}  // namespace
}  // namespace sluice::gpu
