// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "deviceplugin/inventory/drain_watch.h"

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "common/bytes.h"
#include "tests/support/temp_folder.h"

namespace sluice::deviceplugin {
namespace {

constexpr std::chrono::seconds kPatience{60};  // only ends a test that fails

TEST(DrainWatch, FollowsOrdersAndGrants) {
  const testing::TempFolder temp;
  const Result<GrantStore> store = GrantStore::Open(temp.path());
  const Result<DeviceIds> ids = DeviceIds::Make({{"GPU-a", 2 * kGiB}, {"GPU-b", kGiB}}, kGiB);
  ASSERT_TRUE(store.ok() && ids.ok());
  const std::string used = ids->IdOf({0, 0});
  const std::string unused = ids->IdOf({0, 1});
  const Result<GrantRecord> grant = store->Make({"", "GPU-a", kGiB, 1, {used}});
  ASSERT_TRUE(grant.ok());
  std::mutex mutex;
  std::condition_variable changed;
  std::set<std::string> kept = {"nothing was said"};
  const auto await = [&](const std::set<std::string>& wanted) {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, kPatience, [&] { return kept == wanted; });
  };
  const auto watch = DrainWatch::Start(&*store, &*ids, [&](std::set<std::string> now) {
    const std::lock_guard lock(mutex);
    kept = std::move(now);
    changed.notify_all();
  });
  ASSERT_TRUE(watch.ok()) << watch.status().message();
  EXPECT_TRUE(await({}));
  ASSERT_TRUE(store->SetDrained("GPU-a", true).ok());
  EXPECT_TRUE(await({unused})) << "whoever runs goes on";
  ASSERT_TRUE(store->Remove(grant->id).ok());
  EXPECT_TRUE(await({used, unused}));
  ASSERT_TRUE(store->SetDrained("GPU-a", false).ok());
  EXPECT_TRUE(await({}));
}

}  // namespace
}  // namespace sluice::deviceplugin
