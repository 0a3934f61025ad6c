// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "intercept/protocol/page_access.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>

// Two threads stand for the two processes: what a sanitizer finds here would be torn or reordered
// between them.

namespace sluice::protocol {
namespace {

TEST(PageAccess, RecordsArriveInOrderOrAreCounted) {
  auto client = std::make_unique<ClientPage>();
  auto daemon = std::make_unique<DaemonPage>();
  constexpr uint64_t kRecords = 400'000;
  std::thread producer([&] {
    uint64_t cached_tail = 0;
    for (uint64_t i = 0; i < kRecords; ++i) {
      const OpRecord record{static_cast<uint8_t>(OpKind::kLaunch), 0, 0, static_cast<uint32_t>(i),
                            i * 3};
      PushRecord(*client, *daemon, cached_tail, record);
    }
  });
  uint64_t tail = 0;
  uint64_t seen = 0;
  uint64_t last = 0;
  OpRecord batch[512];
  while (seen + client->lost.load() < kRecords) {
    const size_t count = PopRecords(*client, *daemon, tail, batch, std::size(batch));
    for (size_t i = 0; i < count; ++i) {
      ASSERT_EQ(batch[i].value, uint64_t{batch[i].detail} * 3) << "a torn record";
      ASSERT_TRUE(seen == 0 || batch[i].value > last) << "out of order";
      last = batch[i].value;
      ++seen;
    }
  }
  producer.join();
  while (const size_t count = PopRecords(*client, *daemon, tail, batch, std::size(batch))) {
    seen += count;
  }
  EXPECT_EQ(seen + client->lost.load(), kRecords);
}

TEST(PageAccess, AHostileHeadReadsAsEmpty) {
  auto client = std::make_unique<ClientPage>();
  auto daemon = std::make_unique<DaemonPage>();
  OpRecord batch[4];
  uint64_t tail = 0;
  client->head = kRingRecords + 1;
  EXPECT_EQ(PopRecords(*client, *daemon, tail, batch, 4), 0u);
  client->head = ~uint64_t{0};
  EXPECT_EQ(PopRecords(*client, *daemon, tail, batch, 4), 0u);
  EXPECT_EQ(tail, 0u);
}

TEST(PageAccess, AProfileIsReadWholeOrNotAtAll) {
  auto daemon = std::make_unique<DaemonPage>();
  auto image = std::make_unique<ProfileImage>();
  constexpr uint32_t kVersions = 200;
  std::thread writer([&] {
    for (uint32_t version = 1; version <= kVersions; ++version) {
      image->profile_id = version;
      image->period = version;
      image->trough_hash = uint64_t{version} << 32 | version;
      for (uint32_t& ns : image->launch_ns) ns = version;
      PublishProfile(*daemon, *image);
    }
  });
  auto read = std::make_unique<ProfileImage>();
  uint32_t last = 0;
  while (last < kVersions) {
    if (!ReadProfile(*daemon, read.get())) continue;
    ASSERT_GE(read->profile_id, last);
    last = read->profile_id;
    ASSERT_EQ(read->period, last);
    ASSERT_EQ(read->trough_hash, uint64_t{last} << 32 | last);
    for (const uint32_t ns : read->launch_ns) ASSERT_EQ(ns, last);
    ASSERT_EQ(read->seq, 2 * last);
  }
  writer.join();
}

}  // namespace
}  // namespace sluice::protocol
