// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "intercept/session/client.h"
#include "tests/unit/intercept/fake_daemon.h"
#include "tests/unit/intercept/fake_driver.h"

namespace sluice::test {

inline constexpr size_t kUnit = 64 * 1024;

/// One client between a fake driver and a fake daemon, with a pool of 32 units of 64 KiB.
class ClientTest : public ::testing::Test {
 protected:
  void SetUp() override { Start(FakeDaemon::Options()); }
  void TearDown() override {
    if (client != nullptr) {
      static_cast<void>(client->ContextDestroy(driver.context));
    }
  }

  void Start(const FakeDaemon::Options& options, const Client::Settings& settings = {}) {
    TearDown();
    daemon = std::make_unique<FakeDaemon>(options);
    client = std::make_unique<Client>();
    client->Configure(&driver.table(), daemon->path().c_str(), settings);
  }

  CUdeviceptr AllocAsync(size_t bytes, CUstream stream = FakeDriver::Stream(1)) {
    CUdeviceptr at = 0;
    EXPECT_EQ(client->AllocAsync(&at, bytes, stream), CUDA_SUCCESS);
    return at;
  }

  /// A launch that does nothing on the GPU but take its place in the stream.
  void Launch(const char* name, CUstream stream = FakeDriver::Stream(1)) {
    const CUresult result = client->Launch(FakeDriver::Function(name), stream, [&] {
      driver.Enqueue(stream, [] {});
      return CUDA_SUCCESS;
    });
    EXPECT_EQ(result, CUDA_SUCCESS);
  }

  /// All records so far, as the daemon would read them.
  std::vector<protocol::OpRecord> Records() {
    protocol::OpRecord batch[256];
    while (const size_t count = protocol::PopRecords(*daemon->client, *daemon->daemon, tail_, batch,
                                                     std::size(batch))) {
      records_.insert(records_.end(), batch, batch + count);
    }
    return records_;
  }

  FakeDriver driver;
  std::unique_ptr<FakeDaemon> daemon;
  std::unique_ptr<Client> client;

 private:
  uint64_t tail_ = 0;
  std::vector<protocol::OpRecord> records_;
};

inline bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace sluice::test
