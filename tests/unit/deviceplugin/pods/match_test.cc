// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "deviceplugin/pods/match.h"

#include <gtest/gtest.h>

namespace sluice::pods {
namespace {

using Owners = std::vector<Owned>;
using Matches = std::map<std::string, Match>;
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
Owned Listed(const std::string& container, std::vector<std::string> ids) {
  return {"ns/" + container, std::move(ids)};
}

TEST(MatchGrants, AGrantIsTheContainersThatIsListedWithItsIds) {
  const std::vector<Pod> pods = {PodOf("a", {{"main", 2}, {"side", 1}}),
                                 PodOf("ab", {{"main", 1}})};
  const Owners owners = {Listed("a/main", {"x-1", "x-0"}), Listed("a/side", {"x-2"}),
                         Listed("ab/main", {"x-3"})};
  EXPECT_EQ(
      MatchGrants(
          {Grant("1", 101, {"x-0", "x-1"}), Grant("2", 101, {"x-2"}), Grant("3", 101, {"x-3"})},
          owners, pods),
      (Matches{{"1", {"uid-a", "main"}}, {"2", {"uid-a", "side"}}, {"3", {"uid-ab", "main"}}}));
}

TEST(MatchGrants, IdsOfTwoContainersOrOfNobodyAreNoMatch) {
  const std::vector<Pod> pods = {PodOf("a", {{"main", 1}, {"side", 1}})};
  const Owners owners = {Listed("a/main", {"x-0"}), Listed("a/side", {"x-1"})};
  EXPECT_TRUE(MatchGrants({Grant("1", 101, {"x-0", "x-1"}), Grant("2", 101, {"x-7"})}, owners, pods)
                  .empty());
  EXPECT_TRUE(MatchGrants({Grant("1", 101, {"x-0"})}, owners, {}).empty()) << "an unknown pod";
}

TEST(MatchGrants, OfTwoWithTheSameIdsTheFirstIsTheInitContainers) {
  const std::vector<Pod> pods = {PodOf("a", {{"prepare", 1, true}, {"main", 1}})};
  const std::vector<GrantRecord> grants = {Grant("main", 102, {"x-0"}),
                                           Grant("init", 101, {"x-0"})};
  EXPECT_EQ(MatchGrants(grants, {Listed("a/main", {"x-0"})}, pods),
            (Matches{{"init", {"uid-a", "prepare"}}, {"main", {"uid-a", "main"}}}));
}

TEST(MatchGrants, AGrantFromBeforeThePodIsNotItsInitContainers) {
  const std::vector<Pod> pods = {PodOf("a", {{"prepare", 1, true}, {"main", 1}})};
  const std::vector<GrantRecord> grants = {Grant("main", 102, {"x-0"}), Grant("old", 50, {"x-0"})};
  EXPECT_EQ(MatchGrants(grants, {Listed("a/main", {"x-0"})}, pods),
            (Matches{{"main", {"uid-a", "main"}}}));
}

TEST(MatchGrants, WhatKubeletStillListsOfPodsThatAreOverIsPassedOver) {
  Pod over = PodOf("old", {{"main", 2}});
  over.over = true;
  const Pod young = PodOf("young", {{"main", 2}});
  const Owners owners = {Listed("old/main", {"x-0", "x-1"}), Listed("gone/main", {"x-1", "x-2"}),
                         Listed("young/main", {"x-0", "x-1"}), Listed("old/main", {"x-0", "x-1"})};
  EXPECT_EQ(MatchGrants({Grant("1", 101, {"x-0", "x-1"})}, owners, {over, young}),
            (Matches{{"1", {"uid-young", "main"}}}));
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
  EXPECT_EQ(MatchGrants(grants, owners, {old}, known), known);
  Matches both = known;
  both["new"] = {"uid-young", "main"};
  EXPECT_EQ(MatchGrants(grants, owners, {old, young}, known), both);
  EXPECT_EQ(MatchGrants(grants, owners, {young, old}, known), both);
}

TEST(MatchGrants, AnInitContainerAloneIsTheOnlyOneThatItCanBe) {
  const Pod one = PodOf("a", {{"prepare", 2, true}, {"main", 0}});
  const Pod other = PodOf("b", {{"prepare", 2, true}, {"main", 0}});
  const std::vector<GrantRecord> grants = {Grant("1", 101, {"x-0", "x-1"})};
  EXPECT_EQ(MatchGrants(grants, {}, {one}), (Matches{{"1", {"uid-a", "prepare"}}}));
  EXPECT_TRUE(MatchGrants(grants, {}, {one, other}).empty()) << "it may be either";
  Pod over = other;
  over.over = true;
  EXPECT_EQ(MatchGrants(grants, {}, {one, over}).size(), 1u);
  EXPECT_TRUE(MatchGrants({Grant("1", 50, {"x-0", "x-1"})}, {}, {one}).empty());
  EXPECT_TRUE(MatchGrants({Grant("1", 101, {"x-0"})}, {}, {one}).empty()) << "fewer granules";
}

}  // namespace
}  // namespace sluice::pods
