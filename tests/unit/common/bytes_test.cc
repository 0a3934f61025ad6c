// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "common/bytes.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

TEST(ParseBytes, ReadsBinaryAndDecimalSuffixes) {
  EXPECT_EQ(*ParseBytes("3GiB", "limit"), 3 * kGiB);
  EXPECT_EQ(*ParseBytes("512Mi", "limit"), 512 * kMiB);
  EXPECT_EQ(*ParseBytes("1.5 GiB", "limit"), kGiB + kGiB / 2);
  EXPECT_EQ(*ParseBytes("1000000", "limit"), 1000000u);
  EXPECT_EQ(*ParseBytes("64kB", "limit"), 64000u);
}

TEST(ParseBytes, RefusesEverythingElseAndNamesTheField) {
  for (const char* text :
       {"", "GiB", "-1GiB", "0", "3 apples", "nan", "1e300GiB", "1GiBB", "0x10"}) {
    const Result<uint64_t> result = ParseBytes(text, "--limit");
    ASSERT_FALSE(result.ok()) << text;
    EXPECT_EQ(result.status().code(), StatusCode::kInvalidArgument);
    EXPECT_NE(result.status().message().find("--limit"), std::string::npos);
    EXPECT_NE(result.status().message().find("3GiB"), std::string::npos);
  }
}

TEST(FormatBytes, UsesBinaryUnits) {
  EXPECT_EQ(FormatBytes(512), "512 B");
  EXPECT_EQ(FormatBytes(26 * kMiB), "26.0 MiB");
}

}  // namespace
}  // namespace sluice
