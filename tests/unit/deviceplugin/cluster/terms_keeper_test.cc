// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "deviceplugin/cluster/terms_keeper.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>

#include "common/bytes.h"
#include "tests/support/temp_folder.h"

namespace sluice::deviceplugin {
namespace {

using Owners = std::vector<pods::Owned>;
constexpr std::chrono::seconds kPatience{60};  // only ends a test that fails

constexpr uint64_t kHour = 3'600'000'000'000;

class TermsKeeperTest : public ::testing::Test {
 protected:
  TermsKeeperTest() : store_(*GrantStore::Open(temp_.path())) {}

  void Start() {
    TermsKeeper::World world;
    world.owners.listed = [this] {
      const std::lock_guard lock(mutex_);
      return owners_;
    };
    world.owners.pods = [this]() -> std::optional<pods::NodePods> {
      const std::lock_guard lock(mutex_);
      if (!pods_.has_value()) return std::nullopt;
      return pods::NodePods{*pods_, as_of_ns_};
    };
    world.owners.renew = [this] {
      const std::lock_guard lock(mutex_);
      renewed_at_.push_back(round_);
    };
    world.warn = [this](const pods::Pod&, const std::string& reason, const std::string& text) {
      const std::lock_guard lock(mutex_);
      warnings_.push_back(text);
      reasons_.push_back(reason);
    };
    world.hold = [this](const std::vector<Holding>& holdings) {
      const std::lock_guard lock(mutex_);
      holdings_ = holdings;
      ++round_;
      rounds_.notify_all();
    };
    auto keeper = TermsKeeper::Start(&store_, std::move(world));
    ASSERT_TRUE(keeper.ok());
    keeper_ = std::move(*keeper);
  }
  void Change(const std::function<void()>& change) {
    {
      const std::lock_guard lock(mutex_);
      change();
    }
    keeper_->Wake();
  }
  /// After a round, what it left.
  bool Await(const std::function<bool()>& done) {
    std::unique_lock lock(mutex_);
    return rounds_.wait_for(lock, kPatience, done);
  }
  static pods::Pod PodWith(pods::Annotations annotations) {
    pods::Pod pod;
    pod.space = "ns";
    pod.name = "a";
    pod.uid = "uid";
    pod.annotations = std::move(annotations);
    pod.parts = {{"main", 1, false}};
    return pod;
  }
  /// By whoever has x-0. Grants are in the order of their ids, which is anyone's guess.
  uint64_t held() const {
    for (const Holding& holding : holdings_) {
      if (holding.devices == std::vector<std::string>{"x-0"}) return holding.limit_bytes;
    }
    return 0;
  }

  const testing::TempFolder temp_;
  const GrantStore store_;
  std::mutex mutex_;
  std::condition_variable rounds_;
  Result<std::vector<pods::Owned>> owners_ = std::vector<pods::Owned>();
  uint64_t as_of_ns_ = 0;
  std::optional<std::vector<pods::Pod>> pods_ = std::vector<pods::Pod>();
  std::vector<std::string> warnings_;
  std::vector<std::string> reasons_;
  std::vector<Holding> holdings_;
  int round_ = 0;
  std::vector<int> renewed_at_;
  std::unique_ptr<TermsKeeper> keeper_;  // last: its thread uses all of them
};

TEST_F(TermsKeeperTest, AGrantGetsTheTermsOfItsPodAndTheirChangesAndEndsWithIt) {
  pods_ = {PodWith({{"sluice.dev/memory-limit", "4Mi"}})};
  ASSERT_NO_FATAL_FAILURE(Start());
  const Result<GrantRecord> grant = store_.Make({"", "GPU-1", kMiB, 1, {"x-0"}});
  const Result<GrantRecord> larger = store_.Make({"", "GPU-1", 2 * kMiB, 1, {"x-1", "x-2"}});
  ASSERT_TRUE(Await([&] { return held() == 4 * kMiB && holdings_.size() == 2; }))
      << "nobody's yet, but it can be that pod's";
  EXPECT_TRUE(Await([&] {
    return std::any_of(holdings_.begin(), holdings_.end(), [](const Holding& holding) {
      return holding.devices.size() == 2 && holding.limit_bytes == 2 * kMiB;
    });
  })) << "which this one cannot";
  EXPECT_FALSE(store_.TermsOf(grant->id).ok());
  ASSERT_TRUE(store_.Remove(larger->id).ok());
  Change([&] { owners_ = Owners{{"ns/a/main", {"x-0"}}}; });
  ASSERT_TRUE(Await([&] { return store_.TermsOf(grant->id).ok() && held() == 4 * kMiB; }));
  EXPECT_EQ(*store_.TermsOf(grant->id), (GrantTerms{"ns/a/main", "uid", 4 * kMiB, 0, "ns", ""}));

  Change([&] { pods_ = {PodWith({{"sluice.dev/memory-limit", "6Mi"}})}; });
  ASSERT_TRUE(Await([&] { return held() == 6 * kMiB; }));
  EXPECT_EQ(store_.TermsOf(grant->id)->limit_bytes, 6 * kMiB);

  int before = 0;
  Change([&] {
    pods_->clear();
    before = round_;
  });
  size_t count = 0;
  ASSERT_TRUE(Await([&] {
    keeper_->Wake();
    count = holdings_.size();
    return round_ > before + 2;
  }));
  EXPECT_EQ(count, 1u) << "it was deleted by force: kubelet still has it";
  Change([&] { owners_ = Owners(); });
  ASSERT_TRUE(Await([&] { return holdings_.empty(); }));
  EXPECT_TRUE(store_.List()->grants.empty());
  EXPECT_TRUE(warnings_.empty());
}

TEST_F(TermsKeeperTest, AGrantWhosePodEndedWithoutAPluginEnds) {
  pods_.reset();
  const Result<GrantRecord> grant = store_.Make({"", "GPU-1", kMiB, 1, {"x-0"}});
  ASSERT_TRUE(store_.SetTerms(grant->id, {"ns/a/main", "uid", 4 * kMiB, 0, "ns", ""}).ok());
  const Result<GrantRecord> fresh = store_.Make({"", "GPU-1", kMiB, 1, {"x-1"}});
  ASSERT_NO_FATAL_FAILURE(Start());
  ASSERT_TRUE(Await([&] { return holdings_.size() == 2 && held() == 4 * kMiB; }))
      << "nothing is known of pods yet";
  int before = 0;
  Change([&] {
    pods_ = {PodWith({})};
    before = round_;
  });
  size_t count = 0;
  ASSERT_TRUE(Await([&] {
    keeper_->Wake();
    count = holdings_.size();
    return round_ > before + 2;
  }));
  EXPECT_EQ(count, 2u) << "its pod is there";
  Change([&] { pods_->clear(); });
  ASSERT_TRUE(Await([&] { return holdings_.size() == 1; }));
  EXPECT_FALSE(store_.TermsOf(grant->id).ok());
  EXPECT_EQ(store_.List()->grants.at(0).id, fresh->id) << "whose pod nobody knows yet";
}

TEST_F(TermsKeeperTest, WhoComesToAnInitContainersGrantGetsItsTerms) {
  pods::Pod one = PodWith({{"sluice.dev/memory-limit", "4Mi"}});
  one.parts = {{"prepare", 1, true}, {"main", 0, false}};
  pods::Pod other = one;
  other.uid = "other";
  pods_ = {one, other};
  ASSERT_NO_FATAL_FAILURE(Start());
  const Result<GrantRecord> grant = store_.Make({"", "GPU-1", kMiB, 1, {"x-0"}});
  ASSERT_TRUE(Await([&] { return !holdings_.empty(); }));
  EXPECT_FALSE(store_.TermsOf(grant->id).ok());
  ASSERT_TRUE(store_.SetFirstPod(grant->id, "uid").ok());
  ASSERT_TRUE(Await([&] { return store_.TermsOf(grant->id).ok(); })) << "nobody else wakes it";
  EXPECT_EQ(store_.TermsOf(grant->id)->pod, "uid");
  EXPECT_EQ(store_.TermsOf(grant->id)->job, "ns/a/prepare");
}

TEST_F(TermsKeeperTest, AKubeletThatListsNobodyEndsNobodyHoweverOldHisGrantIs) {
  pods_ = {PodWith({})};
  as_of_ns_ = kHour;
  owners_ = Owners{{"ns/a/main", {"x-0"}}};
  const Result<GrantRecord> grant = store_.Make({"", "GPU-1", kMiB, 1, {"x-0"}});
  const Result<GrantRecord> left = store_.Make({"", "GPU-1", kMiB, 2, {"x-1"}});
  ASSERT_NO_FATAL_FAILURE(Start());
  ASSERT_TRUE(Await([&] { return store_.TermsOf(grant->id).ok() && holdings_.size() == 1; }))
      << "the other one is nobody's: the only pod has its own";
  for (const auto& answer :
       {Result<Owners>(Owners()), Result<Owners>(Status(StatusCode::kUnavailable, "away"))}) {
    int before = 0;
    Change([&] {
      owners_ = answer;
      before = round_;
    });
    // A grant that it cannot match makes it ask.
    const Result<GrantRecord> fresh = store_.Make({"", "GPU-1", kMiB, 2 * kHour, {"x-2"}});
    ASSERT_TRUE(Await([&] {
      keeper_->Wake();
      return round_ > before + 3;
    }));
    EXPECT_TRUE(store_.TermsOf(grant->id).ok());
    ASSERT_TRUE(store_.Remove(fresh->id).ok());
  }
  // And where kubelet does not answer, a pod that is gone may be on its way out.
  int before = 0;
  Change([&] {
    pods_->clear();
    before = round_;
  });
  ASSERT_TRUE(Await([&] {
    keeper_->Wake();
    return round_ > before + 3;
  }));
  EXPECT_TRUE(store_.TermsOf(grant->id).ok());
  Change([&] { owners_ = Owners(); });
  EXPECT_TRUE(Await([&] { return holdings_.empty(); }));
}

TEST_F(TermsKeeperTest, PodsAreListedAnewEverMoreSeldomWhileOneIsMissed) {
  owners_ = Owners{{"ns/a/main", {"x-0"}}};
  ASSERT_NO_FATAL_FAILURE(Start());
  const Result<GrantRecord> grant = store_.Make({"", "GPU-1", kMiB, 1, {"x-0"}});
  ASSERT_TRUE(Await([&] {
    keeper_->Wake();
    return renewed_at_.size() == 3;
  }));
  EXPECT_EQ(renewed_at_[1] - renewed_at_[0], 15);
  EXPECT_EQ(renewed_at_[2] - renewed_at_[1], 30);
  Change([&] { pods_ = {PodWith({})}; });
  ASSERT_TRUE(Await([&] { return store_.TermsOf(grant->id).ok(); }));
}

TEST_F(TermsKeeperTest, RoomIsKeptForAnOperatorsLimit) {
  pods_ = {PodWith({{"sluice.dev/memory-limit", "4Mi"}})};
  owners_ = Owners{{"ns/a/main", {"x-0"}}};
  ASSERT_NO_FATAL_FAILURE(Start());
  const Result<GrantRecord> grant = store_.Make({"", "GPU-1", kMiB, 1, {"x-0"}});
  ASSERT_TRUE(Await([&] { return held() == 4 * kMiB; }));
  ASSERT_TRUE(store_.SetLimitOrder(grant->id, LimitOrder{8 * kMiB, 4 * kMiB}).ok());
  EXPECT_TRUE(Await([&] { return held() == 8 * kMiB; })) << "nothing but the order has changed";
  Change([&] { pods_ = {PodWith({{"sluice.dev/memory-limit", "6Mi"}})}; });
  EXPECT_TRUE(Await([&] { return held() == 6 * kMiB; })) << "who spoke last is right";
}

TEST_F(TermsKeeperTest, WhoPassesTheDaemonByIsSaidOnce) {
  pods_ = {PodWith({})};
  owners_ = Owners{{"ns/a/main", {"x-0"}}};
  ASSERT_NO_FATAL_FAILURE(Start());
  const Result<GrantRecord> grant = store_.Make({"", "GPU-1", kMiB, 1, {"x-0"}});
  ASSERT_TRUE(Await([&] { return store_.TermsOf(grant->id).ok(); }));
  ASSERT_TRUE(store_.SetBypass(grant->id, "process 7 uses the GPU").ok());
  ASSERT_TRUE(Await([&] { return warnings_.size() == 1; }));
  EXPECT_EQ(warnings_[0], "process 7 uses the GPU");
  EXPECT_EQ(reasons_[0], "SluiceBypassed");
  ASSERT_TRUE(store_.SetReport(grant->id, "no").ok());
  ASSERT_TRUE(Await([&] { return warnings_.size() == 2; })) << "and nothing in the way of others";
  EXPECT_EQ(reasons_[1], "SluiceRefused");
}

TEST_F(TermsKeeperTest, WhatHappenedToAJobIsAnEventOfItsOwnKind) {
  pods_ = {PodWith({})};
  owners_ = Owners{{"ns/a/main", {"x-0"}}};
  ASSERT_NO_FATAL_FAILURE(Start());
  const Result<GrantRecord> grant = store_.Make({"", "GPU-1", kMiB, 1, {"x-0"}});
  ASSERT_TRUE(Await([&] { return store_.TermsOf(grant->id).ok(); }));
  size_t said = 0;
  for (const auto& [word, reason] :
       {std::pair("waited", "SluiceWaits"), std::pair("refused", "SluiceOutOfMemory"),
        std::pair("deviated", "SluiceDeviated"), std::pair("evicted", "SluiceEvicted")}) {
    ASSERT_TRUE(store_.SetHappening(grant->id, {word, std::string("it ") + word}).ok());
    ++said;
    ASSERT_TRUE(Await([&] { return warnings_.size() == said; })) << word;
    EXPECT_EQ(reasons_.back(), reason);
    EXPECT_EQ(warnings_.back(), std::string("it ") + word);
  }
}

TEST_F(TermsKeeperTest, WhatHappenedTwiceBeforeItLooksIsTwoEvents) {
  pods_ = {PodWith({})};
  owners_ = Owners{{"ns/a/main", {"x-0"}}};
  const Result<GrantRecord> grant = store_.Make({"", "GPU-1", kMiB, 1, {"x-0"}});
  ASSERT_TRUE(store_.SetHappening(grant->id, {"refused", "no 12 MiB"}).ok());
  ASSERT_TRUE(store_.SetHappening(grant->id, {"waited", "for 4 MiB"}).ok());
  ASSERT_NO_FATAL_FAILURE(Start());
  ASSERT_TRUE(Await([&] { return warnings_.size() == 2; }));
  ASSERT_TRUE(store_.SetHappening(grant->id, {"refused", "no 13 MiB"}).ok());
  ASSERT_TRUE(Await([&] { return warnings_.size() >= 3; }));
  EXPECT_EQ(warnings_, (std::vector<std::string>{"no 12 MiB", "for 4 MiB", "no 13 MiB"}))
      << "each of them once, in their order";
  EXPECT_EQ(reasons_,
            (std::vector<std::string>{"SluiceOutOfMemory", "SluiceWaits", "SluiceOutOfMemory"}));
  // The plugin after this one says it again word for word: by that the API server knows what it
  // has.
  keeper_.reset();
  warnings_.clear();
  reasons_.clear();
  ASSERT_NO_FATAL_FAILURE(Start());
  ASSERT_TRUE(Await([&] { return warnings_.size() >= 2; }));
  EXPECT_EQ(warnings_, (std::vector<std::string>{"for 4 MiB", "no 13 MiB"}));
  EXPECT_EQ(reasons_, (std::vector<std::string>{"SluiceWaits", "SluiceOutOfMemory"}));
}

TEST_F(TermsKeeperTest, WhatIsRefusedIsSaidOnceAndTheLimitBeforeItHolds) {
  pods_ = {PodWith({{"sluice.dev/memory-limit", "4Mi"}})};
  owners_ = Owners{{"ns/a/main", {"x-0"}}};
  ASSERT_NO_FATAL_FAILURE(Start());
  const Result<GrantRecord> grant = store_.Make({"", "GPU-1", kMiB, 1, {"x-0"}});
  ASSERT_TRUE(Await([&] { return held() == 4 * kMiB; }));
  Change([&] { pods_ = {PodWith({{"sluice.dev/memory-limit", "much"}})}; });
  ASSERT_TRUE(Await([&] { return warnings_.size() == 1; }));
  EXPECT_NE(warnings_[0].find("sluice.dev/memory-limit 'much'"), std::string::npos);
  ASSERT_TRUE(Await([&] { return held() == 4 * kMiB; }));
  EXPECT_NE(store_.TermsOf(grant->id)->refusal, "");

  // The daemon cannot lower it as far as the pod wants now, and says so.
  ASSERT_TRUE(store_.SetReport(grant->id, "it holds 3.0 MiB").ok());
  Change([&] { pods_ = {PodWith({{"sluice.dev/memory-limit", "2Mi"}})}; });
  ASSERT_TRUE(Await([&] { return warnings_.size() == 2; }));
  EXPECT_EQ(warnings_[1], "it holds 3.0 MiB");
  EXPECT_TRUE(Await([&] { return held() == 4 * kMiB; }));
  // The plugin after this one knows it, too, before it knows any pod and then.
  for (const bool knows : {false, true}) {
    keeper_.reset();
    holdings_.clear();
    if (knows) {
      pods_ = {PodWith({{"sluice.dev/memory-limit", "2Mi"}})};
    } else {
      pods_.reset();
    }
    ASSERT_NO_FATAL_FAILURE(Start());
    uint64_t first = 0;
    EXPECT_TRUE(Await([&] {
      first = held();
      return !holdings_.empty();
    }));
    EXPECT_EQ(first, 4 * kMiB) << knows;
  }
  ASSERT_TRUE(store_.SetReport(grant->id, "").ok());
  EXPECT_TRUE(Await([&] { return held() == 2 * kMiB; })) << "the report's end is followed";
}

TEST_F(TermsKeeperTest, AnnotationsOfWhoAsksForNothingAreSaidOnce) {
  pods::Pod pod = PodWith({{"sluice.dev/memory-limit", "4Mi"}});
  pod.parts = {{"main", 0, false}};
  pods_ = {pod};
  ASSERT_NO_FATAL_FAILURE(Start());
  size_t said = 0;
  ASSERT_TRUE(Await([&] {
    keeper_->Wake();
    said = warnings_.size();
    return round_ > 3;
  }));
  ASSERT_EQ(said, 1u);
  EXPECT_EQ(warnings_[0],
            "sluice.dev/memory-limit '4Mi': allowed where a container of the pod asks for "
            "sluice.dev/gpu-memory");
  EXPECT_EQ(reasons_[0], "SluiceRefused");
}

/// As a daemon does with a limit beyond its pool: the one before stays, and it says so.
TEST_F(TermsKeeperTest, ARaiseThatTheDaemonRefusesGivesItsGranulesBack) {
  pods_ = {PodWith({{"sluice.dev/memory-limit", "4Mi"}})};
  owners_ = Owners{{"ns/a/main", {"x-0"}}};
  ASSERT_NO_FATAL_FAILURE(Start());
  const Result<GrantRecord> grant = store_.Make({"", "GPU-1", kMiB, 1, {"x-0"}});
  ASSERT_TRUE(Await([&] { return held() == 4 * kMiB; }));
  const auto answer = [&](uint64_t limit) {
    const Result<GrantTerms> terms = store_.TermsOf(grant->id);
    ASSERT_TRUE(terms.ok());
    ASSERT_TRUE(store_.SetAnswer(grant->id, {limit, TermsText(*terms)}).ok());
  };
  answer(4 * kMiB);
  Change([&] { pods_ = {PodWith({{"sluice.dev/memory-limit", "64Mi"}})}; });
  ASSERT_TRUE(Await([&] { return held() == 64 * kMiB; })) << "the daemon may take it";
  ASSERT_TRUE(store_.SetReport(grant->id, "allowed: up to 16.0 MiB (the pool)").ok());
  answer(4 * kMiB);
  EXPECT_TRUE(Await([&] { return held() == 4 * kMiB; })) << "nothing but the answer has changed";
  // The plugin after this one knows it, too, before it knows any pod and then.
  for (const bool knows : {false, true}) {
    keeper_.reset();
    holdings_.clear();
    if (knows) {
      pods_ = {PodWith({{"sluice.dev/memory-limit", "64Mi"}})};
    } else {
      pods_.reset();
    }
    ASSERT_NO_FATAL_FAILURE(Start());
    uint64_t first = 0;
    EXPECT_TRUE(Await([&] {
      first = held();
      return first != 0;
    }));
    EXPECT_EQ(first, 4 * kMiB) << knows;
  }
  // What an operator has made of it since, the daemon says of the same terms.
  answer(8 * kMiB);
  EXPECT_TRUE(Await([&] { return held() == 8 * kMiB; }));
}

TEST_F(TermsKeeperTest, RoomForALowerLimitIsFreeWhenTheDaemonHasTakenIt) {
  pods_ = {PodWith({{"sluice.dev/memory-limit", "4Mi"}})};
  owners_ = Owners{{"ns/a/main", {"x-0"}}};
  ASSERT_NO_FATAL_FAILURE(Start());
  const Result<GrantRecord> grant = store_.Make({"", "GPU-1", kMiB, 1, {"x-0"}});
  ASSERT_TRUE(Await([&] { return held() == 4 * kMiB; }));
  const std::string before = TermsText(*store_.TermsOf(grant->id));
  ASSERT_TRUE(store_.SetAnswer(grant->id, {4 * kMiB, before}).ok());
  int before_it = 0;
  Change([&] {
    pods_ = {PodWith({{"sluice.dev/memory-limit", "2Mi"}})};
    before_it = round_;
  });
  uint64_t meanwhile = 0;
  ASSERT_TRUE(Await([&] {
    keeper_->Wake();
    meanwhile = held();
    return round_ > before_it + 2;
  }));
  EXPECT_EQ(meanwhile, 4 * kMiB) << "it may still hold that";
  const std::string now = TermsText(*store_.TermsOf(grant->id));
  ASSERT_TRUE(store_.SetAnswer(grant->id, {2 * kMiB, now}).ok());
  EXPECT_TRUE(Await([&] { return held() == 2 * kMiB; }));
}

}  // namespace
}  // namespace sluice::deviceplugin
