// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "common/grant/store.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "tests/support/temp_folder.h"

namespace sluice {
namespace {

namespace fs = std::filesystem;

class GrantStoreTest : public ::testing::Test {
 protected:
  GrantStore Open() {
    Result<GrantStore> store = GrantStore::Open(root_);
    EXPECT_TRUE(store.ok()) << store.status().message();
    return std::move(*store);
  }
  static GrantRecord Wanted() { return {"", "GPU-1", 4096, 17, {"a-0", "a-1"}}; }
  static mode_t ModeOf(const std::string& path) {
    struct stat state = {};
    EXPECT_EQ(::stat(path.c_str(), &state), 0) << path;
    return state.st_mode & 0777;
  }

  const testing::TempFolder temp_;
  const std::string root_ = temp_.path();
};

TEST_F(GrantStoreTest, WhatIsMadeIsThereAfterARestart) {
  std::vector<GrantRecord> made;
  for (int i = 0; i < 3; ++i) {
    const Result<GrantRecord> grant = Open().Make(Wanted());
    ASSERT_TRUE(grant.ok()) << grant.status().message();
    EXPECT_TRUE(IsGrantId(grant->id));
    made.push_back(*grant);
  }
  std::sort(made.begin(), made.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
  const auto listed = Open().List();
  ASSERT_TRUE(listed.ok());
  EXPECT_EQ(listed->grants, made);
  EXPECT_TRUE(listed->errors.empty());
}

TEST_F(GrantStoreTest, OthersSeeTheFolderAndNotTheRecord) {
  const Result<GrantRecord> grant = Open().Make(Wanted());
  ASSERT_TRUE(grant.ok());
  EXPECT_EQ(ModeOf(root_ + "/g"), 0700u);
  EXPECT_EQ(ModeOf(root_ + "/g/" + grant->id), 0600u);
  EXPECT_EQ(ModeOf(root_ + "/a"), 0711u) << "nobody lists the others";
  EXPECT_EQ(ModeOf(Open().FolderOf(grant->id)), 0755u);
}

TEST_F(GrantStoreTest, RemovesRecordAndFolder) {
  const GrantStore store = Open();
  const Result<GrantRecord> grant = store.Make(Wanted());
  ASSERT_TRUE(grant.ok());
  std::ofstream(store.FolderOf(grant->id) + "/sluice.sock") << "in the way";
  EXPECT_TRUE(store.Remove(grant->id).ok());
  EXPECT_FALSE(fs::exists(store.FolderOf(grant->id)));
  EXPECT_TRUE(store.List()->grants.empty());
  EXPECT_TRUE(store.Remove(grant->id).ok()) << "a second time";
}

TEST_F(GrantStoreTest, NothingElseIsEverRemoved) {
  const GrantStore store = Open();
  for (const char* id : {"", "..", "../../etc", "."}) {
    EXPECT_EQ(store.Remove(id).code(), StatusCode::kInvalidArgument) << id;
  }
  EXPECT_TRUE(fs::exists(root_ + "/a"));
}

TEST_F(GrantStoreTest, ABrokenRecordIsNamedAndTheOthersAreRead) {
  const GrantStore store = Open();
  const Result<GrantRecord> good = store.Make(Wanted());
  const Result<GrantRecord> moved = store.Make(Wanted());
  ASSERT_TRUE(good.ok() && moved.ok());
  const std::string broken = root_ + "/g/" + std::string(32, 'f');
  std::ofstream(broken) << "sluice-grant 9\n";
  const std::string other = root_ + "/g/" + std::string(32, 'e');
  fs::rename(root_ + "/g/" + moved->id, other);
  std::ofstream(root_ + "/g/" + std::string(32, 'd') + ".new") << "unfinished";
  const auto listed = store.List();
  ASSERT_TRUE(listed.ok());
  ASSERT_EQ(listed->grants.size(), 1u);
  EXPECT_EQ(listed->grants.front(), *good);
  const std::vector<std::string> errors = {
      other + ": it is the record of " + moved->id,
      broken + ": grant record, line 1: 'sluice-grant 9': allowed: 'sluice-grant 1'"};
  EXPECT_EQ(listed->errors, errors);
}

TEST_F(GrantStoreTest, AnErrorLeavesNothingBehind) {
  const GrantStore store = Open();
  fs::remove_all(root_ + "/g");
  const Result<GrantRecord> grant = store.Make(Wanted());
  EXPECT_FALSE(grant.ok());
  EXPECT_TRUE(fs::is_empty(root_ + "/a"));
}

TEST_F(GrantStoreTest, NoTwoAreTheSame) {
  const GrantStore store = Open();
  std::set<std::string> ids;
  for (int i = 0; i < 200; ++i) ids.insert(store.Make(Wanted())->id);
  EXPECT_EQ(ids.size(), 200u);
}

TEST_F(GrantStoreTest, TermsComeLaterAndGoWithTheGrant) {
  const GrantStore store = Open();
  const Result<GrantRecord> grant = store.Make(Wanted());
  ASSERT_TRUE(grant.ok());
  EXPECT_EQ(store.TermsOf(grant->id).status().code(), StatusCode::kNotFound);
  GrantTerms terms{"ns/pod/main", "uid", 8192, 1, "ns", ""};
  ASSERT_TRUE(store.SetTerms(grant->id, terms).ok());
  terms.limit_bytes = 4096;
  ASSERT_TRUE(store.SetTerms(grant->id, terms).ok());
  ASSERT_TRUE(Open().TermsOf(grant->id).ok());
  EXPECT_EQ(*Open().TermsOf(grant->id), terms);
  EXPECT_EQ(ModeOf(root_ + "/t"), 0700u);
  ASSERT_TRUE(store.Remove(grant->id).ok());
  EXPECT_EQ(store.TermsOf(grant->id).status().code(), StatusCode::kNotFound);
  EXPECT_TRUE(fs::is_empty(root_ + "/t"));
}

TEST_F(GrantStoreTest, TheFirstPodStaysTheFirst) {
  const GrantStore store = Open();
  const Result<GrantRecord> grant = store.Make(Wanted());
  ASSERT_TRUE(grant.ok());
  EXPECT_EQ(store.FirstPodOf(grant->id), "");
  ASSERT_TRUE(store.SetFirstPod(grant->id, "uid-a").ok());
  ASSERT_TRUE(store.SetFirstPod(grant->id, "uid-b").ok());
  EXPECT_EQ(Open().FirstPodOf(grant->id), "uid-a");
  EXPECT_EQ(ModeOf(root_ + "/u"), 0700u);
  ASSERT_TRUE(store.Remove(grant->id).ok());
  EXPECT_EQ(store.FirstPodOf(grant->id), "");
}

TEST_F(GrantStoreTest, TermsThatSayTheSameAreNotWrittenAgain) {
  const GrantStore store = Open();
  const Result<GrantRecord> grant = store.Make(Wanted());
  const GrantTerms terms{"ns/pod/main", "uid", 8192, 1, "ns", ""};
  ASSERT_TRUE(store.SetTerms(grant->id, terms).ok());
  const auto written = fs::last_write_time(root_ + "/t/" + grant->id);
  ASSERT_TRUE(store.SetTerms(grant->id, terms).ok());
  EXPECT_EQ(fs::last_write_time(root_ + "/t/" + grant->id), written);
}

TEST_F(GrantStoreTest, ALimitOrderHoldsUntilItIsTakenBackOrTheGrantEnds) {
  const GrantStore store = Open();
  const Result<GrantRecord> grant = store.Make(Wanted());
  EXPECT_EQ(store.LimitOrderOf(grant->id), std::nullopt);
  ASSERT_TRUE(store.SetLimitOrder(grant->id, LimitOrder{8192, 4096}).ok());
  EXPECT_EQ(Open().LimitOrderOf(grant->id), (LimitOrder{8192, 4096}));
  ASSERT_TRUE(store.SetLimitOrder(grant->id, std::nullopt).ok());
  EXPECT_EQ(store.LimitOrderOf(grant->id), std::nullopt);
  ASSERT_TRUE(store.SetLimitOrder(grant->id, LimitOrder{8192, 4096}).ok());
  std::ofstream(root_ + "/l/" + grant->id) << "sluice-limit 9\n";
  EXPECT_EQ(store.LimitOrderOf(grant->id), std::nullopt);
  ASSERT_TRUE(store.Remove(grant->id).ok());
  EXPECT_TRUE(fs::is_empty(root_ + "/l"));
}

TEST_F(GrantStoreTest, TheLimitInForceStaysWithItsGrant) {
  const GrantStore store = Open();
  const Result<GrantRecord> grant = store.Make(Wanted());
  EXPECT_EQ(store.InForceOf(grant->id), std::nullopt);
  ASSERT_TRUE(store.SetInForce(grant->id, 8192).ok());
  EXPECT_EQ(Open().InForceOf(grant->id), 8192u);
  ASSERT_TRUE(store.Remove(grant->id).ok());
  EXPECT_TRUE(fs::is_empty(root_ + "/f"));
}

TEST_F(GrantStoreTest, ABypassStaysWithItsGrant) {
  const GrantStore store = Open();
  const Result<GrantRecord> grant = store.Make(Wanted());
  EXPECT_EQ(store.BypassOf(grant->id), "");
  ASSERT_TRUE(store.SetBypass(grant->id, "process 7").ok());
  EXPECT_EQ(Open().BypassOf(grant->id), "process 7");
  ASSERT_TRUE(store.Remove(grant->id).ok());
  EXPECT_TRUE(fs::is_empty(root_ + "/b"));
}

TEST_F(GrantStoreTest, WhatHappenedLastOfEachWordStaysWithItsGrant) {
  const GrantStore store = Open();
  const Result<GrantRecord> grant = store.Make(Wanted());
  const Result<GrantRecord> other = store.Make(Wanted());
  EXPECT_TRUE(store.HappeningsOf(grant->id).empty());
  for (const auto& [word, text] :
       {std::pair("waited", "for 4 MiB"), std::pair("refused", "12 MiB"),
        std::pair("deviated", "more blocks"), std::pair("evicted", "so that others go on"),
        std::pair("waited", "for 5 MiB"), std::pair("refused", "12 MiB")}) {
    ASSERT_TRUE(store.SetHappening(grant->id, {word, text}).ok()) << word;
  }
  EXPECT_EQ(Open().HappeningsOf(grant->id),
            (std::vector<Happening>{{"refused", "12 MiB"},
                                    {"deviated", "more blocks"},
                                    {"evicted", "so that others go on"},
                                    {"waited", "for 5 MiB"}}))
      << "in the order in which they were new";
  EXPECT_TRUE(store.HappeningsOf(other->id).empty());
  ASSERT_TRUE(store.Remove(grant->id).ok());
  EXPECT_TRUE(fs::is_empty(root_ + "/e"));
}

TEST_F(GrantStoreTest, OnlyWhatHasAWordHappens) {
  const GrantStore store = Open();
  const Result<GrantRecord> grant = store.Make(Wanted());
  for (const char* word : {"", "slept", "new", "/../../g/x"}) {
    EXPECT_EQ(store.SetHappening(grant->id, {word, "text"}).code(), StatusCode::kInvalidArgument)
        << word;
  }
  EXPECT_TRUE(fs::is_empty(root_ + "/e"));
  std::ofstream(root_ + "/e/" + grant->id + ".waited") << "soon\nfor 4 MiB";
  std::ofstream(root_ + "/e/" + grant->id + ".evicted") << "1";
  EXPECT_TRUE(store.HappeningsOf(grant->id).empty()) << "neither can be read";
}

TEST_F(GrantStoreTest, AGpuIsDrainedUntilItIsNot) {
  const GrantStore store = Open();
  EXPECT_TRUE(store.DrainedGpus().empty());
  ASSERT_TRUE(store.SetDrained("GPU-a", true).ok());
  ASSERT_TRUE(store.SetDrained("GPU-b", true).ok());
  EXPECT_EQ(Open().DrainedGpus(), (std::set<std::string>{"GPU-a", "GPU-b"}));
  ASSERT_TRUE(store.SetDrained("GPU-a", false).ok());
  ASSERT_TRUE(store.SetDrained("GPU-a", false).ok()) << "as it was";
  EXPECT_EQ(Open().DrainedGpus(), std::set<std::string>{"GPU-b"});
}

TEST_F(GrantStoreTest, AGpuIsBrokenUntilTheNextBoot) {
  const GrantStore store = Open();
  EXPECT_TRUE(store.BrokenGpus("boot-1").empty());
  ASSERT_TRUE(store.SetBroken("GPU-1", 79, "boot-1").ok());
  EXPECT_EQ(Open().BrokenGpus("boot-1"), (std::map<std::string, uint64_t>{{"GPU-1", 79}}));
  EXPECT_TRUE(store.BrokenGpus("boot-2").empty());
  std::ofstream(root_ + "/x/GPU-2") << "much";
  EXPECT_EQ(store.BrokenGpus("boot-1").size(), 1u);
}

TEST_F(GrantStoreTest, AnAnswerIsALimitAndTheTermsThatItIsAbout) {
  const GrantStore store = Open();
  const Result<GrantRecord> grant = store.Make(Wanted());
  EXPECT_FALSE(store.AnswerOf(grant->id).has_value());
  for (const uint64_t limit : {uint64_t{8}, uint64_t{7}}) {
    ASSERT_TRUE(store.SetAnswer(grant->id, {limit, "sluice-terms 1\njob = a\n"}).ok());
    const auto answer = Open().AnswerOf(grant->id);
    ASSERT_TRUE(answer.has_value());
    EXPECT_EQ(answer->limit_bytes, limit);
    EXPECT_EQ(answer->terms, "sluice-terms 1\njob = a\n");
  }
  std::ofstream(root_ + "/n/" + grant->id) << "much\nsluice-terms 1\n";
  EXPECT_FALSE(store.AnswerOf(grant->id).has_value());
  ASSERT_TRUE(store.Remove(grant->id).ok());
  EXPECT_FALSE(std::ifstream(root_ + "/n/" + grant->id).good());
}

TEST_F(GrantStoreTest, AReportIsWhatWasSaidLast) {
  const GrantStore store = Open();
  const Result<GrantRecord> grant = store.Make(Wanted());
  EXPECT_EQ(store.ReportOf(grant->id), "");
  ASSERT_TRUE(store.SetReport(grant->id, "no").ok());
  ASSERT_TRUE(store.SetReport(grant->id, "not yet\nnot now").ok());
  EXPECT_EQ(store.ReportOf(grant->id), "not yet\nnot now");
  ASSERT_TRUE(store.SetReport(grant->id, "").ok());
  EXPECT_EQ(store.ReportOf(grant->id), "");
}

}  // namespace
}  // namespace sluice
