// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "deviceplugin/daemon/ceilings_file.h"

#include <gtest/gtest.h>

#include "common/bytes.h"

namespace sluice::deviceplugin {
namespace {

std::string ErrorOf(const std::string& yaml) { return ParseCeilings(yaml).status().message(); }

TEST(CeilingsFile, EachNamespaceHasWhatIsSaidOfIt) {
  const auto ceilings = ParseCeilings(
      "team-a: {maxMemoryLimit: 40Gi, maxPriority: 100, shareGroups: false}\n"
      "team-b:\n"
      "'*': {maxPriority: -5}\n");
  ASSERT_TRUE(ceilings.ok()) << ceilings.status().message();
  EXPECT_EQ(*ceilings, (pods::Ceilings{{"team-a", {40 * kGiB, 100, false}},
                                       {"team-b", {}},
                                       {"*", {std::nullopt, -5, true}}}));
  EXPECT_EQ(*ParseCeilings(""), pods::Ceilings());
}

TEST(CeilingsFile, EveryErrorIsNamedAtOnce) {
  const std::string errors = ErrorOf(
      "a: {maxMemoryLimit: 40GB, maxPriority: high}\n"
      "b: {shareGroups: 1, maxLimit: 3}\n"
      "c: 7\n");
  for (const char* text :
       {"a.maxMemoryLimit '40GB': allowed: a whole number of bytes",
        "a.maxPriority 'high': allowed: -1000 to 1000", "b.shareGroups '1': allowed: true, false",
        "b.maxLimit: allowed: maxMemoryLimit, maxPriority, shareGroups", "c '7': allowed: a map"}) {
    EXPECT_NE(errors.find(text), std::string::npos) << text << "\n" << errors;
  }
  EXPECT_EQ(ErrorOf("- a"),
            "the file: allowed: a map of namespaces, or \"*\", to what their pods may say");
  EXPECT_FALSE(ParseCeilings("a: {").ok());
  EXPECT_NE(ErrorOf("a: {maxPriority: 1001}"), "");
  EXPECT_EQ(ReadCeilings("/nowhere").status().code(), StatusCode::kNotFound);
}

}  // namespace
}  // namespace sluice::deviceplugin
