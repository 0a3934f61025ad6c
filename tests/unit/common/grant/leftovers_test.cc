// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "common/grant/leftovers.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/support/temp_folder.h"

namespace sluice {
namespace {

namespace fs = std::filesystem;

const std::string kId = "0123456789abcdef0123456789abcdef";

TEST(Leftovers, AreWhatIsOldAndHasNoRecord) {
  const fs::file_time_type now = fs::file_time_type::clock::now();
  const std::vector<GrantTrace> traces = {{"/a/has", "has", now - kLeftoverAge},
                                          {"/a/being-made", "being-made", now},
                                          {"/a/from-the-future", "x", now + kLeftoverAge},
                                          {"/a/old", "old", now - kLeftoverAge}};
  EXPECT_EQ(Leftovers(traces, {"has"}, now), std::vector<std::string>{"/a/old"});
}

class SweepTest : public ::testing::Test {
 protected:
  void SetUp() override { store_.emplace(std::move(*GrantStore::Open(root_))); }
  /// All that a grant can have, but for its record.
  void WriteAllOf(const std::string& id) {
    fs::create_directory(store_->FolderOf(id));
    std::ofstream(store_->FolderOf(id) + "/sluice.sock") << "";
    ASSERT_TRUE(store_->SetFirstPod(id, "uid").ok());
    ASSERT_TRUE(store_->SetTerms(id, {}).ok());
    ASSERT_TRUE(store_->SetReport(id, "refused").ok());
    ASSERT_TRUE(store_->SetAnswer(id, {}).ok());
    ASSERT_TRUE(store_->SetInForce(id, 1).ok());
    ASSERT_TRUE(store_->SetLimitOrder(id, LimitOrder()).ok());
    ASSERT_TRUE(store_->SetBypass(id, "seen").ok());
    ASSERT_TRUE(store_->SetHappening(id, {"waited", "for memory"}).ok());
    std::ofstream(store_->record_folder() + "/" + id + ".new") << "";
  }
  size_t Files() const {
    size_t files = 0;
    for (const auto& entry : fs::recursive_directory_iterator(root_)) {
      if (entry.path().parent_path() != root_) ++files;
    }
    return files;
  }
  size_t SweptAfter(fs::file_time_type::duration age) const {
    const Result<size_t> swept = SweepLeftovers(*store_, fs::file_time_type::clock::now() + age);
    EXPECT_TRUE(swept.ok()) << swept.status().message();
    return swept.ok() ? *swept : 0;
  }
  const testing::TempFolder temp_;
  const std::string root_ = temp_.path();
  std::optional<GrantStore> store_;
};

TEST_F(SweepTest, NothingOfAGrantWithoutARecordStays) {
  WriteAllOf(kId);
  ASSERT_EQ(Files(), 11u);
  EXPECT_EQ(SweptAfter({}), 0u) << "it may be in the making";
  EXPECT_EQ(SweptAfter(2 * kLeftoverAge), 10u);
  EXPECT_EQ(Files(), 0u);
}

TEST_F(SweepTest, WhatHasARecordAndWhatIsOfAGpuStays) {
  const std::string id = store_->Make({"", "GPU-a", 1, 1, {"x-0"}})->id;
  WriteAllOf(id);
  ASSERT_TRUE(store_->SetDrained("GPU-a", true).ok());
  ASSERT_TRUE(store_->SetBroken("GPU-a", 79, "boot").ok());
  std::ofstream(root_ + "/g/" + kId) << "cannot be read";
  fs::create_directory(store_->FolderOf(kId));
  const size_t files = Files();
  EXPECT_EQ(SweptAfter(2 * kLeftoverAge), 0u);
  EXPECT_EQ(Files(), files);
  ASSERT_TRUE(store_->Remove(id).ok());
  EXPECT_EQ(SweptAfter(2 * kLeftoverAge), 1u) << "its record was never finished anew";
}

}  // namespace
}  // namespace sluice
