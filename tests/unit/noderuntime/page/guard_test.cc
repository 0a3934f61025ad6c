// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/page/guard.h"

#include <gtest/gtest.h>

namespace sluice::page {
namespace {

TEST(ParseListen, TakesLoopbackAlone) {
  const auto listen = ParseListen("127.0.0.1:8080");
  ASSERT_TRUE(listen.ok());
  EXPECT_EQ(Authority(*listen), "127.0.0.1:8080");
  EXPECT_EQ(Authority(*ParseListen("[::1]:0")), "[::1]:0");
  EXPECT_EQ(Authority(*ParseListen("localhost:65535")), "127.0.0.1:65535");
  for (const char* bad :
       {"", "8080", ":8080", "0.0.0.0:8080", "10.0.0.1:1", "127.0.0.1", "127.0.0.1:", "[::]:1",
        "127.0.0.1:65536", "127.0.0.1:-1", "127.0.0.1.example:1", "::1:80", "127.0.0.1:1x"}) {
    const auto refused = ParseListen(bad);
    ASSERT_FALSE(refused.ok()) << bad;
    EXPECT_EQ(refused.status().code(), StatusCode::kInvalidArgument);
    EXPECT_NE(refused.status().message().find("allowed: 127.0.0.1:PORT"), std::string::npos) << bad;
  }
}

TEST(IsLocalHost, KnowsThisMachineWithAnyPort) {
  for (const char* good :
       {"localhost", "localhost:1", "127.0.0.1", "127.0.0.1:54321", "[::1]", "[::1]:80"}) {
    EXPECT_TRUE(IsLocalHost(good)) << good;
  }
}

TEST(IsLocalHost, RefusesNamesThatMayBeMadeToResolveToIt) {
  for (const char* bad :
       {"", "evil.example", "evil.example:80", "localhost.evil.example", "127.0.0.1.nip.io",
        "127.0.0.1:80:80", "localhost:", "localhost:x", "localhost:99999", "[::1]x", "::1",
        "0.0.0.0", "192.168.1.2:80", "127.0.0.1@evil.example"}) {
    EXPECT_FALSE(IsLocalHost(bad)) << bad;
  }
}

TEST(SameToken, TakesTheWholeTokenOnly) {
  EXPECT_TRUE(SameToken("abc", "abc"));
  for (const char* bad : {"", "ab", "abcd", "abd", "ABC"}) EXPECT_FALSE(SameToken("abc", bad));
  EXPECT_FALSE(SameToken("", ""));
}

}  // namespace
}  // namespace sluice::page
