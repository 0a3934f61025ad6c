// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "deviceplugin/pods/over.h"

#include <gtest/gtest.h>

namespace sluice::pods {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;
constexpr uint64_t kUnseen = 120 * kSecond;
using Over = std::vector<std::string>;

GrantRecord Grant(const std::string& id, uint64_t second, std::vector<std::string> devices) {
  return {id, "GPU-1", devices.size(), second * kSecond, std::move(devices)};
}
Pod PodOf(const std::string& name, std::vector<Pod::Part> parts) {
  Pod pod;
  pod.space = "ns";
  pod.name = name;
  pod.uid = "uid-" + name;
  pod.parts = std::move(parts);
  return pod;
}
NodePods At(uint64_t second, std::vector<Pod> pods) { return {std::move(pods), second * kSecond}; }

const std::vector<GrantRecord> kOne = {Grant("1", 100, {"x-0"})};
const Matches kItsOwn = {{"1", {"uid-a", "main"}}};

TEST(OverGrants, NoneWhosePodIsThereWhateverKubeletLists) {
  const NodePods there = At(99'999, {PodOf("a", {{"prepare", 1, true}})});
  EXPECT_EQ(OverGrants(kOne, {}, there, {{"1", {"uid-a", "prepare"}}}, kUnseen), Over());
  const Signs others = {{}, {{"ns/b/main", {"x-0"}}}};
  EXPECT_EQ(OverGrants(kOne, others, there, {{"1", {"uid-a", "prepare"}}}, kUnseen), Over());
  EXPECT_EQ(OverGrants(kOne, {{{"1", "uid-a"}}, {}}, there, {}, kUnseen), Over())
      << "it is not known which container's it is";
}

TEST(OverGrants, WhosePodIsOverAtOnce) {
  Pod pod = PodOf("a", {{"main", 1}});
  pod.over = true;
  EXPECT_EQ(OverGrants(kOne, {}, At(1, {pod}), kItsOwn, kUnseen), Over{"1"});
  EXPECT_EQ(OverGrants(kOne, {}, At(1, {}), kItsOwn, kUnseen), Over{"1"});
}

TEST(OverGrants, OneThatWasDeletedByForceIsThereWhileKubeletListsIt) {
  const Signs listed = {{}, {{"ns/a/main", {"x-0"}}}};
  EXPECT_EQ(OverGrants(kOne, listed, At(500, {}), kItsOwn, kUnseen), Over());
  // The ids of its init container are those of the other one, too.
  const std::vector<GrantRecord> both = {kOne[0], Grant("2", 101, {"x-0", "x-1"})};
  const Signs both_listed = {{}, {{"ns/a/main", {"x-0", "x-1"}}}};
  EXPECT_EQ(OverGrants(both, both_listed, At(500, {}),
                       {{"1", {"uid-a", "prepare"}}, {"2", {"uid-a", "main"}}}, kUnseen),
            Over());
}

TEST(OverGrants, TheNextPodWithItsIdsIsNotTheOneBefore) {
  const std::vector<GrantRecord> both = {kOne[0], Grant("2", 101, {"x-0"})};
  const Signs listed = {{}, {{"ns/b/main", {"x-0"}}}};
  const NodePods there = At(500, {PodOf("b", {{"main", 1}})});
  EXPECT_EQ(OverGrants(both, listed, there, kItsOwn, kUnseen), Over{"1"}) << "whose it is comes";
  Matches all = kItsOwn;
  all["2"] = {"uid-b", "main"};
  EXPECT_EQ(OverGrants(both, listed, there, all, kUnseen), Over{"1"});
}

TEST(OverGrants, NobodysWhenAllPodsHaveTheirs) {
  const NodePods there = At(221, {PodOf("a", {{"main", 1}}), PodOf("b", {{"main", 2}})});
  const std::vector<GrantRecord> grants = {kOne[0], Grant("2", 100, {"x-1"})};
  EXPECT_EQ(OverGrants(grants, {}, there, {}, kUnseen), Over()) << "one of them is pod a's";
  EXPECT_EQ(OverGrants(grants, {}, there, kItsOwn, kUnseen), Over{"2"});
  EXPECT_EQ(OverGrants(grants, {}, At(219, there.pods), kItsOwn, kUnseen), Over())
      << "its pod may not have been among those that were listed then";
  EXPECT_EQ(OverGrants(grants, {{}, {{"ns/c/main", {"x-1"}}}}, there, kItsOwn, kUnseen), Over());
  EXPECT_EQ(OverGrants(grants, {{{"2", "uid-b"}}, {}}, there, kItsOwn, kUnseen), Over());
  EXPECT_EQ(OverGrants(grants, {{{"2", "uid-c"}}, {}}, there, kItsOwn, kUnseen), Over{"2"});
}

}  // namespace
}  // namespace sluice::pods
