// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "intercept/blocks/owners.h"

#include <gtest/gtest.h>

namespace sluice::test {
namespace {

TEST(Owners, HaveANumberUntilTheyAreDropped) {
  Owners owners;
  EXPECT_EQ(owners.NumberOf(0), Owners::kNobody) << "no context";
  EXPECT_EQ(owners.Find(0), Owners::kNobody);
  EXPECT_EQ(owners.Find(0xa), Owners::kNobody);
  const uint16_t a = owners.NumberOf(0xa);
  const uint16_t b = owners.NumberOf(0xb);
  EXPECT_NE(a, Owners::kNobody);
  EXPECT_NE(a, b);
  EXPECT_EQ(owners.NumberOf(0xa), a);
  EXPECT_EQ(owners.Find(0xb), b);
  owners.Drop(a);
  EXPECT_EQ(owners.Find(0xa), Owners::kNobody);
  EXPECT_EQ(owners.NumberOf(0xc), a);
}

TEST(Owners, AreFoundByEveryNumberTheyHave) {
  Owners owners;
  const uint16_t ending = owners.NumberOf(0xa);
  owners.Rename(0xa, 0xea);
  const uint16_t meanwhile = owners.NumberOf(0xa);
  EXPECT_NE(meanwhile, ending);
  owners.Rename(0xea, 0xa);
  owners.Rename(0, 0xff);
  EXPECT_EQ(owners.Find(0xff), Owners::kNobody);
  for (int left = 2; left > 0; --left) {
    const uint16_t number = owners.Find(0xa);
    EXPECT_TRUE(number == ending || number == meanwhile);
    owners.Drop(number);
  }
  EXPECT_EQ(owners.Find(0xa), Owners::kNobody);
}

TEST(Owners, AreNobodyBeyondThoseThereIsRoomFor) {
  Owners owners;
  uint64_t name = 1;
  while (owners.NumberOf(name) != Owners::kNobody) ++name;
  EXPECT_GT(name, 60u);
  EXPECT_EQ(owners.NumberOf(1), owners.Find(1)) << "those that are there stay";
  owners.Drop(owners.Find(7));
  EXPECT_NE(owners.NumberOf(name), Owners::kNobody);
}

}  // namespace
}  // namespace sluice::test
