// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "deviceplugin/collect/stale.h"

#include <gtest/gtest.h>

namespace sluice::deviceplugin {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;
using Ids = std::vector<std::string>;

GrantRecord Grant(const std::string& id, uint64_t at_s, Ids devices) {
  return {id, "GPU-a", 1, at_s * kSecond, std::move(devices)};
}

using Listed = std::optional<std::set<std::string>>;
const Listed kNoAnswer;

TEST(Stale, WhoIsListedNoMoreIsOverAfterSeveralAnswers) {
  const std::vector<GrantRecord> grants = {Grant("a", 1000, {"x-0", "x-1"}),
                                           Grant("b", 1000, {"x-5"})};
  StaleBook book;
  EXPECT_EQ(book.Judge(grants, Listed({"x-1", "x-5"})), Ids());
  EXPECT_EQ(book.Judge(grants, Listed({"x-5"})), Ids());
  EXPECT_EQ(book.Judge(grants, Listed({"x-5"})), Ids());
  EXPECT_EQ(book.Judge(grants, Listed({"x-5"})), Ids{"a"});
}

TEST(Stale, AKubeletThatHasJustBegunEndsNobody) {
  const std::vector<GrantRecord> grants = {Grant("a", 1000, {"x-0"}), Grant("b", 1000, {"x-5"})};
  StaleBook book;
  EXPECT_EQ(book.Judge(grants, Listed({"x-0", "x-5"})), Ids());
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(book.Judge(grants, i % 2 == 0 ? Listed(std::in_place) : kNoAnswer), Ids());
  }
  EXPECT_EQ(book.Judge(grants, Listed({"x-5"})), Ids());
  EXPECT_EQ(book.Judge(grants, Listed({"x-0"})), Ids()) << "and counting begins anew";
  EXPECT_EQ(book.Judge(grants, Listed({"x-5"})), Ids());
  EXPECT_EQ(book.Judge(grants, Listed({"x-5"})), Ids());
}

TEST(Stale, WhatIsNeverListedIsAnInitContainersPerhaps) {
  const std::vector<GrantRecord> grants = {Grant("a", 1000, {"x-0"})};
  StaleBook book;
  for (int i = 0; i < 100; ++i) EXPECT_EQ(book.Judge(grants, Listed({"x-5"})), Ids());
}

TEST(Stale, TheNextPodWithItsIdsEndsIt) {
  const std::vector<GrantRecord> grants = {Grant("old", 1000, {"x-0", "x-1"}),
                                           Grant("new", 1061, {"x-1"})};
  EXPECT_EQ(StaleBook().Judge(grants, Listed({"x-0", "x-1"})), Ids{"old"});
  EXPECT_EQ(StaleBook().Judge(grants, kNoAnswer), Ids{"old"}) << "whatever kubelet says";
}

TEST(Stale, AnInitContainersIdsAreAllocatedTwiceForOnePod) {
  const std::vector<GrantRecord> grants = {Grant("init", 1000, {"x-0", "x-1"}),
                                           Grant("main", 1001, {"x-1", "x-0"})};
  EXPECT_EQ(StaleBook().Judge(grants, kNoAnswer), Ids());
  EXPECT_EQ(StaleBook().Judge(grants, Listed({"x-0", "x-1"})), Ids());
}

}  // namespace
}  // namespace sluice::deviceplugin
