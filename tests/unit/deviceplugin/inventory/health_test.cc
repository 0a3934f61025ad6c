// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "deviceplugin/inventory/health.h"

#include <gtest/gtest.h>

namespace sluice::deviceplugin {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;
constexpr uint64_t kDoubleBit = 48;
constexpr uint64_t kContained = 94;
constexpr uint64_t kPageFault = 31;

HealthBook Book() { return HealthBook(2, {.probation_ns = 60 * kSecond, .overlooked = {62}}); }

TEST(Health, AProgramsErrorIsNotTheDevices) {
  HealthBook book = Book();
  EXPECT_FALSE(book.OnXid(0, kPageFault, 0));
  EXPECT_FALSE(book.OnXid(0, 62, 0)) << "the operator said so";
  EXPECT_TRUE(book.healthy(0));
  EXPECT_EQ(book.NextChangeNs(), std::nullopt);
}

TEST(Health, WhatPassesEndsWithItsProbation) {
  HealthBook book = Book();
  EXPECT_TRUE(book.OnXid(1, kContained, 10 * kSecond));
  EXPECT_FALSE(book.healthy(1));
  EXPECT_TRUE(book.healthy(0)) << "the other one";
  EXPECT_EQ(book.Why(1), "XID 94: back when there was no other for 60 s");
  EXPECT_EQ(book.NextChangeNs(), 70 * kSecond);
  EXPECT_FALSE(book.OnTime(70 * kSecond - 1));
  EXPECT_TRUE(book.OnTime(70 * kSecond));
  EXPECT_TRUE(book.healthy(1));
  EXPECT_EQ(book.NextChangeNs(), std::nullopt);
}

TEST(Health, AFurtherErrorBeginsItAnew) {
  HealthBook book = Book();
  EXPECT_TRUE(book.OnXid(0, kContained, 0));
  EXPECT_FALSE(book.OnXid(0, kContained, 50 * kSecond)) << "it was away already";
  EXPECT_FALSE(book.OnTime(60 * kSecond));
  EXPECT_TRUE(book.OnTime(110 * kSecond));
}

TEST(Health, WhatNeedsAResetStays) {
  HealthBook book = Book();
  EXPECT_TRUE(book.OnXid(0, kContained, 0));
  EXPECT_FALSE(book.OnXid(0, kDoubleBit, 1));
  EXPECT_FALSE(book.OnXid(0, kContained, 2)) << "what passes does not make it good";
  EXPECT_FALSE(book.OnTime(1000 * kSecond));
  EXPECT_EQ(book.Why(0), "XID 48: it needs a reset; back after the node's next start");
  EXPECT_EQ(book.Lasting(0), kDoubleBit);
  EXPECT_EQ(book.Lasting(1), std::nullopt);
}

TEST(Health, ADeviceThatIsLostOnceIsNot) {
  HealthBook book = Book();
  for (int i = 0; i < 10; ++i) {
    EXPECT_FALSE(book.OnLost(0, "NVML does not answer", 0));
    EXPECT_FALSE(book.OnLost(0, "NVML does not answer", 0));
    book.OnFound(0);
  }
  EXPECT_TRUE(book.healthy(0));
}

TEST(Health, ALostDeviceIsBackWhenItHasAnsweredForAWhile) {
  HealthBook book = Book();
  EXPECT_FALSE(book.OnLost(0, "NVML does not answer", 1 * kSecond));
  EXPECT_FALSE(book.OnLost(0, "NVML does not answer", 2 * kSecond));
  EXPECT_TRUE(book.OnLost(0, "NVML does not answer", 3 * kSecond));
  EXPECT_EQ(book.Why(0), "NVML does not answer: back when there was no other for 60 s");
  EXPECT_FALSE(book.OnLost(0, "NVML does not answer", 13 * kSecond)) << "it was away already";
  book.OnFound(0);
  EXPECT_FALSE(book.OnTime(72 * kSecond));
  EXPECT_TRUE(book.OnTime(73 * kSecond));
  EXPECT_TRUE(book.healthy(0));
}

TEST(Health, WhatLastsIsNotEndedByAnAnswer) {
  HealthBook book = Book();
  EXPECT_TRUE(book.OnXid(0, kDoubleBit, 0));
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(book.OnLost(0, "NVML does not answer", 0));
  book.OnFound(0);
  EXPECT_FALSE(book.OnTime(1000 * kSecond));
  EXPECT_EQ(book.Lasting(0), kDoubleBit);
}

TEST(Health, ClassesAreThoseOfTheCatalogue) {
  for (const uint64_t xid : {13u, 31u, 43u, 45u, 68u, 109u})
    EXPECT_EQ(ClassOf(xid), XidClass::kProgram);
  for (const uint64_t xid : {48u, 79u, 95u, 119u}) EXPECT_EQ(ClassOf(xid), XidClass::kLasting);
  for (const uint64_t xid : {62u, 63u, 94u, 9999u}) EXPECT_EQ(ClassOf(xid), XidClass::kPassing);
}

}  // namespace
}  // namespace sluice::deviceplugin
