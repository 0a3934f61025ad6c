// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "common/grant/terms.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

GrantTerms Example() {
  return {"team/train-0/main", "0035512f-328e-4a51-94db-4fd35ad6c3e5", 36u << 20, -3, "team/a", ""};
}

TEST(GrantTermsText, WhatIsWrittenIsRead) {
  GrantTerms terms = Example();
  for (const char* refusal : {"", "one line", "field 'x': allowed: y\nanother = one"}) {
    terms.refusal = refusal;
    const Result<GrantTerms> read = ParseTerms(TermsText(terms));
    ASSERT_TRUE(read.ok()) << read.status().message();
    EXPECT_EQ(*read, terms);
  }
}

/// A daemon of an earlier version does not know the words for it.
TEST(GrantTermsText, WhatNobodyAskedForIsNotThere) {
  GrantTerms terms = Example();
  EXPECT_EQ(TermsText(terms).find("inject"), std::string::npos);
  EXPECT_EQ(TermsText(terms).find("host_memory"), std::string::npos);
  terms.inject = false;
  terms.host_memory_bytes = 0;
  const Result<GrantTerms> read = ParseTerms(TermsText(terms));
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(*read, terms);
}

TEST(GrantTermsText, ATextThatWasCutOffIsNone) {
  const std::string text = TermsText(Example());
  for (size_t size = 0; size < text.size(); ++size) {
    EXPECT_FALSE(ParseTerms(text.substr(0, size)).ok()) << size;
  }
}

TEST(GrantTermsText, WhatIsWrongIsNamedWithItsLine) {
  const auto error = [](const std::string& from, const std::string& to) {
    std::string text = TermsText(Example());
    text.replace(text.find(from), from.size(), to);
    return ParseTerms(text).status().message();
  };
  EXPECT_EQ(error("sluice-terms 1", "sluice-terms 2"),
            "terms of a grant, line 1: 'sluice-terms 2': allowed: 'sluice-terms 1'");
  EXPECT_EQ(error("priority = -3", "priority = high"),
            "terms of a grant, line 5: 'priority' 'high': allowed: a whole number");
  EXPECT_EQ(error("limit_bytes = 37748736", "limit_bytes = -1"),
            "terms of a grant, line 4: 'limit_bytes' '-1': allowed: a number");
  EXPECT_EQ(error("group = team/a", "groups = team/a"),
            "terms of a grant, line 6: 'groups' 'team/a': allowed keys: job, pod, limit_bytes, "
            "priority, group, refusal, host_memory_bytes, inject");
  EXPECT_EQ(error("priority = -3\n", ""), "terms of a grant: priority is missing");
  EXPECT_EQ(error("priority = -3", "pod = x"), "terms of a grant, line 5: pod comes twice");
}

}  // namespace
}  // namespace sluice
