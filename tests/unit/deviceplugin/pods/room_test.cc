// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "deviceplugin/pods/room.h"

#include <gtest/gtest.h>

namespace sluice::pods {
namespace {

Pod With(std::vector<Pod::Part> parts) {
  Pod pod;
  pod.parts = std::move(parts);
  return pod;
}

TEST(RoomFor, AContainerBehindTheBeginningGetsItsIdsAndTheRestBesideThem) {
  EXPECT_EQ(RoomFor(2, {With({{"prepare", 2, true}, {"none", 0}, {"main", 8}})}), 8u);
  EXPECT_EQ(RoomFor(8, {With({{"prepare", 8, true}, {"main", 2}})}), 8u);
  EXPECT_EQ(RoomFor(8, {With({{"prepare", 8, true}, {"main", 2}, {"side", 10}})}), 12u);
  EXPECT_EQ(RoomFor(2, {With({{"one", 2, true}, {"two", 4, true}, {"main", 3}})}), 4u);
}

TEST(RoomFor, WhatTheFirstOfTwoBeforeItHadIsKept) {
  EXPECT_EQ(RoomFor(4, {With({{"one", 4, true}, {"two", 2, true}, {"main", 3}})}), 4u);
  EXPECT_EQ(RoomFor(4, {With({{"one", 4, true}, {"two", 2, true}, {"main", 3}, {"side", 5}})}), 8u);
}

TEST(RoomFor, WhoHasNoneOfThemMayBeOnAnotherGpu) {
  EXPECT_EQ(RoomFor(2, {With({{"prepare", 2, true}, {"main", 8}, {"side", 30}})}), 8u);
  EXPECT_EQ(RoomFor(2, {With({{"prepare", 2, true}, {"sidecar", 2}, {"main", 8}})}), 2u);
  EXPECT_EQ(RoomFor(2, {With({{"main", 2}, {"side", 8}})}), 2u);
}

TEST(RoomFor, OfThePodsThatItCanBeTheLargest) {
  Pod begun = With({{"prepare", 2, true}, {"main", 40}});
  begun.begun = true;
  Pod over = begun;
  over.begun = false;
  over.over = true;
  EXPECT_EQ(RoomFor(2, {With({{"prepare", 2, true}, {"main", 8}}), With({{"main", 2}}),
                        With({{"prepare", 3, true}, {"main", 50}}), begun, over}),
            8u);
  EXPECT_EQ(RoomFor(5, {}), 5u) << "nothing is known";
}

}  // namespace
}  // namespace sluice::pods
