// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "deviceplugin/pods/match.h"

#include <gtest/gtest.h>

namespace sluice::pods {
namespace {

using Owners = std::vector<Owned>;
using Firsts = std::map<std::string, std::string>;
constexpr uint64_t kSecond = 1'000'000'000;

GrantRecord Grant(const std::string& id, uint64_t second, std::vector<std::string> devices) {
  return {id, "GPU-1", devices.size(), second * kSecond, std::move(devices)};
}
/// Made at second 100.
Pod PodOf(const std::string& name, std::vector<Pod::Part> parts) {
  Pod pod;
  pod.space = "ns";
  pod.name = name;
  pod.uid = "uid-" + name;
  pod.created_s = 100;
  pod.parts = std::move(parts);
  return pod;
}
/// By kubelet's list alone.
Matches MatchListed(const std::vector<GrantRecord>& grants, const Owners& owners,
                    const std::vector<Pod>& pods, const Matches& known = {}) {
  return MatchGrants(grants, {{}, owners}, pods, known);
}
Owned Listed(const std::string& container, std::vector<std::string> ids) {
  return {"ns/" + container, std::move(ids)};
}

TEST(MatchGrants, AGrantIsTheContainersThatIsListedWithItsIds) {
  const std::vector<Pod> pods = {PodOf("a", {{"main", 2}, {"side", 1}}),
                                 PodOf("ab", {{"main", 1}})};
  const Owners owners = {Listed("a/main", {"x-1", "x-0"}), Listed("a/side", {"x-2"}),
                         Listed("ab/main", {"x-3"})};
  EXPECT_EQ(
      MatchListed(
          {Grant("1", 101, {"x-0", "x-1"}), Grant("2", 101, {"x-2"}), Grant("3", 101, {"x-3"})},
          owners, pods),
      (Matches{{"1", {"uid-a", "main"}}, {"2", {"uid-a", "side"}}, {"3", {"uid-ab", "main"}}}));
}

TEST(MatchGrants, IdsOfTwoContainersOrOfNobodyAreNoMatch) {
  const std::vector<Pod> pods = {PodOf("a", {{"main", 1}, {"side", 1}})};
  const Owners owners = {Listed("a/main", {"x-0"}), Listed("a/side", {"x-1"})};
  EXPECT_TRUE(MatchListed({Grant("1", 101, {"x-0", "x-1"}), Grant("2", 101, {"x-7"})}, owners, pods)
                  .empty());
  EXPECT_TRUE(MatchListed({Grant("1", 101, {"x-0"})}, owners, {}).empty()) << "an unknown pod";
}

TEST(MatchGrants, OfTwoWithTheSameIdsTheFirstIsTheInitContainers) {
  const std::vector<Pod> pods = {PodOf("a", {{"prepare", 1, true}, {"main", 1}})};
  const std::vector<GrantRecord> grants = {Grant("main", 102, {"x-0"}),
                                           Grant("init", 101, {"x-0"})};
  EXPECT_EQ(MatchListed(grants, {Listed("a/main", {"x-0"})}, pods),
            (Matches{{"init", {"uid-a", "prepare"}}, {"main", {"uid-a", "main"}}}));
}

TEST(MatchGrants, AGrantFromBeforeThePodIsNotItsInitContainers) {
  const std::vector<Pod> pods = {PodOf("a", {{"prepare", 1, true}, {"main", 1}})};
  const std::vector<GrantRecord> grants = {Grant("main", 102, {"x-0"}), Grant("init", 101, {"x-0"}),
                                           Grant("old", 50, {"x-0"})};
  EXPECT_EQ(MatchListed(grants, {Listed("a/main", {"x-0"})}, pods),
            (Matches{{"init", {"uid-a", "prepare"}}, {"main", {"uid-a", "main"}}}));
}

TEST(MatchGrants, WhatKubeletStillListsOfPodsThatAreOverIsPassedOver) {
  Pod over = PodOf("old", {{"main", 2}});
  over.over = true;
  const Pod young = PodOf("young", {{"main", 2}});
  const Owners owners = {Listed("old/main", {"x-0", "x-1"}), Listed("gone/main", {"x-1", "x-2"}),
                         Listed("young/main", {"x-0", "x-1"}), Listed("old/main", {"x-0", "x-1"})};
  EXPECT_EQ(MatchListed({Grant("1", 101, {"x-0", "x-1"})}, owners, {over, young}),
            (Matches{{"1", {"uid-young", "main"}}}));
  EXPECT_TRUE(MatchListed({Grant("1", 101, {"x-0", "x-1"})}, owners, {over}).empty());
}

TEST(MatchGrants, APodWithTheNameOfTheLastOneIsAnother) {
  const Pod old = PodOf("a", {{"main", 1}});
  Pod young = old;
  young.uid = "uid-young";
  young.created_s = 110;
  const Owners owners = {Listed("a/main", {"x-0"})};
  const Matches known = {{"old", {"uid-a", "main"}}};
  const std::vector<GrantRecord> grants = {Grant("old", 101, {"x-0"}), Grant("new", 111, {"x-0"})};
  // The API server's word of it comes later than kubelet's.
  EXPECT_EQ(MatchListed(grants, owners, {old}, known), known);
  Matches both = known;
  both["new"] = {"uid-young", "main"};
  EXPECT_EQ(MatchListed(grants, owners, {old, young}, known), both);
  EXPECT_EQ(MatchListed(grants, owners, {young, old}, known), both);
}

TEST(MatchGrants, AnInitContainerThatAsksForLessIsFoundByItsPlaceBeforeTheOther) {
  const std::vector<Pod> pods = {PodOf("a", {{"prepare", 2, true}, {"main", 4}})};
  const std::vector<GrantRecord> grants = {
      Grant("else", 100, {"x-8", "x-9"}), Grant("init", 101, {"x-0", "x-1"}),
      Grant("main", 102, {"x-3", "x-1", "x-2", "x-0"}), Grant("late", 103, {"x-6", "x-7"})};
  EXPECT_EQ(MatchListed(grants, {Listed("a/main", {"x-0", "x-1", "x-2", "x-3"})}, pods),
            (Matches{{"init", {"uid-a", "prepare"}}, {"main", {"uid-a", "main"}}}));
}

TEST(MatchGrants, AnInitContainersIdsComeFirstForTheNextOne) {
  const std::vector<Pod> pods = {PodOf("a", {{"prepare", 2, true}, {"main", 2}})};
  const std::vector<GrantRecord> grants = {Grant("else", 101, {"x-0", "x-1"}),
                                           Grant("main", 102, {"x-2", "x-3"})};
  EXPECT_EQ(MatchListed(grants, {Listed("a/main", {"x-2", "x-3"})}, pods),
            (Matches{{"main", {"uid-a", "main"}}}))
      << "kubelet would have given it x-0 and x-1 again";
}

TEST(MatchGrants, AnInitContainerThatAsksForMoreIsFound) {
  const std::vector<Pod> pods = {PodOf("a", {{"prepare", 4, true}, {"main", 1}, {"side", 2}})};
  const std::vector<GrantRecord> grants = {Grant("init", 101, {"x-0", "x-1", "x-2", "x-3"}),
                                           Grant("main", 102, {"x-2"}),
                                           Grant("side", 103, {"x-0", "x-3"})};
  EXPECT_EQ(
      MatchListed(grants, {Listed("a/main", {"x-2"}), Listed("a/side", {"x-0", "x-3"})}, pods),
      (Matches{{"init", {"uid-a", "prepare"}},
               {"main", {"uid-a", "main"}},
               {"side", {"uid-a", "side"}}}));
}

TEST(MatchGrants, ASidecarKeepsWhatTheInitContainerBeforeItHad) {
  const std::vector<Pod> pods = {
      PodOf("a", {{"first", 2, true}, {"beside", 2}, {"second", 1, true}, {"main", 2}})};
  const std::vector<GrantRecord> grants = {
      Grant("1", 101, {"x-0", "x-1"}), Grant("2", 102, {"x-0", "x-1"}), Grant("3", 103, {"x-2"}),
      Grant("4", 104, {"x-2", "x-3"})};
  const Owners owners = {Listed("a/beside", {"x-0", "x-1"}), Listed("a/main", {"x-2", "x-3"})};
  const Matches all = {{"1", {"uid-a", "first"}},
                       {"2", {"uid-a", "beside"}},
                       {"3", {"uid-a", "second"}},
                       {"4", {"uid-a", "main"}}};
  EXPECT_EQ(MatchListed(grants, owners, pods), all);
  EXPECT_EQ(MatchGrants(grants, {{{"3", "uid-a"}}, {}}, pods), all) << "kubelet has just begun";
}

TEST(MatchGrants, WhoComesShowsWhoseAnInitContainersGrantIs) {
  const Pod one = PodOf("a", {{"prepare", 2, true}, {"main", 0}});
  const Pod other = PodOf("b", {{"prepare", 2, true}, {"main", 0}});
  const std::vector<GrantRecord> grants = {Grant("1", 101, {"x-0", "x-1"}),
                                           Grant("2", 101, {"x-2", "x-3"})};
  EXPECT_TRUE(MatchListed(grants, {}, {one, other}).empty()) << "nothing is guessed";
  EXPECT_TRUE(MatchListed({grants[0]}, {}, {one}).empty())
      << "there may be a pod that is not known yet";
  EXPECT_EQ(MatchGrants(grants, {{{"2", "uid-a"}}, {}}, {one, other}),
            (Matches{{"2", {"uid-a", "prepare"}}}));
  EXPECT_EQ(MatchGrants(grants, {{{"2", "uid-a"}, {"1", "uid-b"}}, {}}, {one, other},
                        {{"2", {"uid-a", "prepare"}}}),
            (Matches{{"1", {"uid-b", "prepare"}}, {"2", {"uid-a", "prepare"}}}));
  EXPECT_TRUE(MatchGrants({Grant("1", 101, {"x-0"})}, {{{"1", "uid-a"}}, {}}, {one}).empty())
      << "fewer granules";
  EXPECT_TRUE(MatchGrants(grants, {{{"2", "uid-c"}}, {}}, {one, other}).empty()) << "not known yet";
}

TEST(MatchGrants, WhoComesNeedsNoClockThatAgrees) {
  const Pod one = PodOf("a", {{"main", 1}});
  EXPECT_EQ(MatchGrants({Grant("1", 7, {"x-0"})}, {{{"1", "uid-a"}}, {}}, {one}).size(), 1u);
  EXPECT_EQ(MatchListed({Grant("1", 7, {"x-0"})}, {Listed("a/main", {"x-0"})}, {one}).size(), 1u)
      << "nor does kubelet's list";
}

TEST(MatchGrants, WhoComesGoesBeforeNames) {
  const Pod old = PodOf("a", {{"main", 1}});
  Pod young = old;
  young.uid = "uid-young";
  young.created_s = 110;
  const Signs signs = {{{"new", "uid-young"}}, {Listed("a/main", {"x-0"})}};
  const std::vector<GrantRecord> grants = {Grant("new", 111, {"x-0"})};
  // The API server's word of the young one comes late.
  EXPECT_TRUE(MatchGrants(grants, signs, {old}).empty());
  EXPECT_TRUE(MatchGrants(grants, signs, {old}, {{"new", {"uid-a", "main"}}}).empty());
  EXPECT_EQ(MatchGrants(grants, signs, {old, young}, {{"new", {"uid-a", "main"}}}),
            (Matches{{"new", {"uid-young", "main"}}}));
}

TEST(MatchGrants, WhatAnOlderPodLeftMakesRoomForWhoComes) {
  const Pod pod = PodOf("a", {{"main", 1}});
  const std::vector<GrantRecord> grants = {Grant("left", 101, {"x-0"}), Grant("new", 111, {"x-3"})};
  const Matches wrong = {{"left", {"uid-a", "main"}}};
  EXPECT_EQ(MatchGrants(grants, {{{"new", "uid-a"}}, {}}, {pod}, wrong),
            (Matches{{"new", {"uid-a", "main"}}}));
  EXPECT_EQ(MatchGrants(grants, {{{"new", "uid-other"}}, {}}, {pod}, wrong), wrong);
}

TEST(MatchGrants, WhoCameToAGrantThatIsNoneOfHisTakesNothingFromOthers) {
  const Pod one = PodOf("a", {{"main", 1}});
  const Pod two = PodOf("b", {{"main", 2}});
  const std::vector<GrantRecord> grants = {Grant("1", 101, {"x-0"}),
                                           Grant("2", 102, {"x-1", "x-2"})};
  const Matches known = {{"2", {"uid-b", "main"}}};
  // Nor does he lose what he has, in an hour in which kubelet lists nobody.
  EXPECT_EQ(MatchGrants(grants, {{{"1", "uid-b"}}, {}}, {one, two}, known), known);
}

TEST(MatchGrants, WithoutTheRecordsBesideItAGrantIsStillFound) {
  const std::vector<Pod> pods = {PodOf("a", {{"prepare", 2, true}, {"main", 4}, {"side", 1}})};
  const std::vector<GrantRecord> grants = {Grant("main", 102, {"x-0", "x-1", "x-2", "x-3"})};
  const Matches main = {{"main", {"uid-a", "main"}}};
  EXPECT_EQ(MatchListed(grants, {Listed("a/main", {"x-0", "x-1", "x-2", "x-3"})}, pods), main);
  EXPECT_EQ(MatchGrants(grants, {{{"main", "uid-a"}}, {}}, pods), main);
}

TEST(CandidatesFor, ContainersWithoutAGrantThatAskForAsMany) {
  const GrantRecord grant = Grant("1", 101, {"x-0", "x-1"});
  Pod pod = PodOf("a", {{"prepare", 2, true}, {"main", 1}, {"side", 2}});
  const Match prepare = {"uid-a", "prepare"};
  const Match side = {"uid-a", "side"};
  EXPECT_EQ(CandidatesFor(grant, {pod}, {}), (Candidates{prepare, side}));
  EXPECT_EQ(CandidatesFor(grant, {pod}, {{"2", prepare}}), Candidates{side});
  EXPECT_EQ(CandidatesFor(grant, {pod}, {{"2", prepare}, {"3", side}}), Candidates());
  pod.over = true;
  EXPECT_EQ(CandidatesFor(grant, {pod}, {}), Candidates());
}

}  // namespace
}  // namespace sluice::pods
