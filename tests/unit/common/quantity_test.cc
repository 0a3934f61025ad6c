// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "common/quantity.h"

#include <gtest/gtest.h>

#include "common/bytes.h"

namespace sluice {
namespace {

uint64_t Good(const std::string& text) {
  const Result<uint64_t> bytes = ParseQuantity(text, "field");
  EXPECT_TRUE(bytes.ok()) << text << ": " << bytes.status().message();
  return bytes.ok() ? *bytes : ~uint64_t{0};
}

TEST(Quantity, ReadsEveryForm) {
  EXPECT_EQ(Good("0"), 0u);
  EXPECT_EQ(Good("1024"), 1024u);
  EXPECT_EQ(Good("+5"), 5u);
  EXPECT_EQ(Good("16Gi"), 16 * kGiB);
  EXPECT_EQ(Good("3Ki"), 3 * kKiB);
  EXPECT_EQ(Good("2Ti"), 2048 * kGiB);
  EXPECT_EQ(Good("16G"), 16'000'000'000u);
  EXPECT_EQ(Good("7k"), 7000u);
  EXPECT_EQ(Good("1500M"), 1'500'000'000u);
  EXPECT_EQ(Good("2e9"), 2'000'000'000u);
  EXPECT_EQ(Good("12E6"), 12'000'000u);
  EXPECT_EQ(Good("1e+3"), 1000u);
  EXPECT_EQ(Good("1E"), 1'000'000'000'000'000'000u);
  EXPECT_EQ(Good("1P"), 1'000'000'000'000'000u);
}

TEST(Quantity, ReadsFractionsOfWholeBytes) {
  EXPECT_EQ(Good("1.5Gi"), 3 * kGiB / 2);
  EXPECT_EQ(Good("0.5Ki"), 512u);
  EXPECT_EQ(Good(".5k"), 500u);
  EXPECT_EQ(Good("2."), 2u);
  EXPECT_EQ(Good("1.0"), 1u);
  EXPECT_EQ(Good("1.250k"), 1250u);
}

TEST(Quantity, WhatIsNoneIsNamedWithItsField) {
  EXPECT_EQ(ParseQuantity("16 GB", "sluice.dev/memory-limit").status().message(),
            "sluice.dev/memory-limit '16 GB': allowed: a whole number of bytes as Kubernetes "
            "writes quantities, "
            "for example 16Gi, 1500M or 2e9");
  for (const char* text : {"",     "+",     "-5",    "-1Gi", ".",
                           "Gi",   "16GiB", "16gb",  "16g",  "1K",
                           "1i",   "1ki",   "1e",    "1e-1", "100m",
                           "1.1",  "0.3Ki", "1e100", "9Ei",  "99999999999999999999",
                           "1..5", "1.5.0", "0x10",  "1 Gi", " 1Gi",
                           "1Gi ", "5e+",   "NaN"}) {
    const Result<uint64_t> bytes = ParseQuantity(text, "field");
    EXPECT_FALSE(bytes.ok()) << text << " = " << (bytes.ok() ? *bytes : 0);
  }
}

TEST(Quantity, AgreesWithPlainArithmetic) {
  for (uint64_t number : {uint64_t{1}, uint64_t{7}, uint64_t{1023}, uint64_t{4096}}) {
    uint64_t binary = number;
    uint64_t decimal = number;
    for (const char* suffix : {"", "K", "M", "G", "T"}) {
      const std::string text = std::to_string(number) + suffix;
      if (*suffix != '\0') {
        EXPECT_EQ(Good(text + "i"), binary) << text;
      }
      if (*suffix != 'K') {
        EXPECT_EQ(Good(text), decimal) << text;
      }
      binary *= 1024;
      decimal *= 1000;
    }
  }
}

}  // namespace
}  // namespace sluice
