// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "tests/unit/examples/host_device.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "examples/train/embedded.h"

namespace train {
namespace {

void* Host(DevicePtr address) { return reinterpret_cast<void*>(address); }

}  // namespace

HostDevice::HostDevice() : module_(kKernelSource) {}

HostDevice::~HostDevice() { EXPECT_TRUE(blocks_.empty()) << "blocks were not freed"; }

DevicePtr HostDevice::Allocate(size_t bytes) {
  void* block = std::malloc(bytes);
  std::memset(block, 0xff, bytes);
  blocks_[reinterpret_cast<DevicePtr>(block)] = bytes;
  live_bytes_ += bytes;
  peak_bytes_ = std::max(peak_bytes_, live_bytes_);
  return reinterpret_cast<DevicePtr>(block);
}

void HostDevice::Free(DevicePtr block) {
  const auto found = blocks_.find(block);
  ASSERT_NE(found, blocks_.end());
  std::memset(Host(block), 0xff, found->second);
  std::free(Host(block));
  live_bytes_ -= found->second;
  blocks_.erase(found);
}

void HostDevice::Fill(DevicePtr block, unsigned value, size_t words) {
  std::fill_n(static_cast<unsigned*>(Host(block)), words, value);
}

void HostDevice::LaunchBlocks(const char* kernel, unsigned blocks, unsigned threads,
                              void** params) {
  live_at_launch_.push_back(live_bytes_);
  module_.RunWithParams(kernel, {blocks, 1, 1}, {threads, 1, 1}, params);
}

}  // namespace train
