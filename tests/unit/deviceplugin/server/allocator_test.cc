// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "deviceplugin/server/allocator.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "common/bytes.h"
#include "tests/support/temp_folder.h"

namespace sluice::deviceplugin {
namespace {

namespace fs = std::filesystem;

class AllocatorTest : public ::testing::Test {
 protected:
  void SetUp() override {
    store_.emplace(std::move(*GrantStore::Open(root_)));
    ids_.emplace(
        std::move(*DeviceIds::Make({{"GPU-a", 1200 * kMiB}, {"GPU-b", 1200 * kMiB}}, kMiB)));
    allocator_.emplace(&*ids_, &*store_, Delivery());
  }

  std::string Id(uint32_t gpu, uint32_t number) const { return ids_->IdOf({gpu, number}); }
  std::vector<GrantRecord> Kept() const { return store_->List()->grants; }

  const testing::TempFolder temp_;
  const std::string root_ = temp_.path();
  std::optional<GrantStore> store_;
  std::optional<DeviceIds> ids_;
  std::optional<Allocator> allocator_;
};

TEST_F(AllocatorTest, KeepsWhatItGives) {
  const auto given = allocator_->Allocate({{Id(1, 7), Id(1, 3)}}, 42);
  ASSERT_TRUE(given.ok()) << given.status().message();
  ASSERT_EQ(given->size(), 1u);
  const std::vector<GrantRecord> kept = Kept();
  ASSERT_EQ(kept.size(), 1u);
  EXPECT_EQ(kept[0].gpu, "GPU-b");
  EXPECT_EQ(kept[0].bytes, 2 * kMiB);
  EXPECT_EQ(kept[0].created_ns, 42u);
  EXPECT_EQ(kept[0].devices, (std::vector<std::string>{Id(1, 3), Id(1, 7)}));
  EXPECT_EQ((*given)[0].mounts[0].host, store_->FolderOf(kept[0].id));
  EXPECT_TRUE(fs::is_directory((*given)[0].mounts[0].host));
}

TEST_F(AllocatorTest, EachContainerHasItsOwn) {
  const auto given = allocator_->Allocate({{Id(0, 0)}, {Id(1, 0), Id(1, 1)}}, 1);
  ASSERT_TRUE(given.ok());
  ASSERT_EQ(given->size(), 2u);
  EXPECT_NE((*given)[0].mounts[0].host, (*given)[1].mounts[0].host);
  EXPECT_EQ((*given)[0].environment.at("NVIDIA_VISIBLE_DEVICES"), "GPU-a");
  EXPECT_EQ((*given)[1].environment.at("NVIDIA_VISIBLE_DEVICES"), "GPU-b");
}

TEST_F(AllocatorTest, UnderMpsV3TheFolderOfAContainerIsThereBeforeItsNamespace) {
  const std::string mps = temp_ / "mps";
  const Allocator allocator(&*ids_, &*store_, {.mps_dir = mps, .mps_v3 = true});
  const auto given = allocator.Allocate({{Id(0, 0)}}, 1);
  ASSERT_TRUE(given.ok()) << given.status().message();
  const std::string folder = mps + "/job/" + Kept().at(0).id;
  EXPECT_EQ((*given)[0].mounts.back().host, folder);
  EXPECT_EQ(fs::status(folder).permissions(), fs::perms(0755));
  EXPECT_EQ(fs::status(mps).permissions(), fs::perms(0711));
  EXPECT_TRUE(fs::is_empty(folder));
  // A folder that cannot be made is no grant.
  fs::remove_all(mps);
  std::ofstream(mps) << "no folder";
  EXPECT_FALSE(allocator.Allocate({{Id(0, 1)}, {Id(0, 2)}}, 1).ok());
  EXPECT_EQ(Kept().size(), 1u);
}

TEST_F(AllocatorTest, WhatFitsNoGpuIsRefusedAndNothingIsKept) {
  const auto given = allocator_->Allocate({{Id(0, 0)}, {Id(0, 1), Id(1, 1)}}, 1);
  EXPECT_EQ(given.status().code(), StatusCode::kResourceExhausted);
  EXPECT_NE(given.status().message().find("on no single GPU"), std::string::npos);
  EXPECT_TRUE(Kept().empty());
}

TEST_F(AllocatorTest, AnErrorOfTheSystemLeavesNothing) {
  fs::permissions(root_ + "/g", fs::perms::none);
  fs::remove_all(root_ + "/g");
  EXPECT_FALSE(allocator_->Allocate({{Id(0, 0)}}, 1).ok());
  EXPECT_TRUE(fs::is_empty(root_ + "/a"));
}

TEST_F(AllocatorTest, AThousandAtATimeOfEqualSize) {
  constexpr uint32_t kThreads = 20;
  constexpr uint32_t kEach = 50;
  std::vector<std::vector<std::string>> folders(kThreads);
  std::vector<std::thread> threads;
  for (uint32_t thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      for (uint32_t i = 0; i < kEach; ++i) {
        const auto given = allocator_->Allocate({{Id(thread % 2, (thread / 2) * kEach + i)}}, 1);
        if (given.ok()) folders[thread].push_back((*given)[0].mounts[0].host);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::set<std::string> all;
  for (const auto& list : folders) all.insert(list.begin(), list.end());
  EXPECT_EQ(all.size(), kThreads * kEach) << "each its own, none twice";
  std::set<std::string> devices;
  for (const GrantRecord& grant : Kept()) {
    ASSERT_EQ(grant.devices.size(), 1u);
    EXPECT_TRUE(devices.insert(grant.devices[0]).second) << grant.devices[0] << " twice";
    EXPECT_EQ(ids_->Find(grant.devices[0])->gpu, grant.gpu == "GPU-a" ? 0u : 1u);
  }
  EXPECT_EQ(devices.size(), kThreads * kEach);
}

}  // namespace
}  // namespace sluice::deviceplugin
