// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/cli/environment.h"

#include <gtest/gtest.h>

namespace sluice::cli {
namespace {

TEST(Environment, PrependsInFrontOfWhatIsThere) {
  Environment environment;
  environment.Set("LD_PRELOAD", "/a.so:/b.so");
  environment.Prepend("LD_PRELOAD", "/sluice.so");
  EXPECT_EQ(environment.Get("LD_PRELOAD"), "/sluice.so:/a.so:/b.so");
}

TEST(Environment, PrependsOnlyOnce) {
  Environment environment;
  environment.Set("LD_PRELOAD", "/a.so /sluice.so");
  environment.Prepend("LD_PRELOAD", "/sluice.so");
  EXPECT_EQ(environment.Get("LD_PRELOAD"), "/sluice.so:/a.so");
}

TEST(Environment, PrependsToNothing) {
  Environment environment;
  environment.Prepend("LD_PRELOAD", "/sluice.so");
  EXPECT_EQ(environment.Get("LD_PRELOAD"), "/sluice.so");
}

TEST(Environment, RemovingTheOnlyItemRemovesTheVariable) {
  Environment environment;
  environment.Set("LD_PRELOAD", "/sluice.so");
  environment.Remove("LD_PRELOAD", "/sluice.so");
  EXPECT_EQ(environment.Get("LD_PRELOAD"), std::nullopt);
}

TEST(Environment, LeavesAListWithoutTheItemAsItIs) {
  Environment environment;
  environment.Set("LD_LIBRARY_PATH", "/a::/b");
  environment.Remove("LD_LIBRARY_PATH", "/c");
  EXPECT_EQ(environment.Get("LD_LIBRARY_PATH"), "/a::/b");
}

TEST(Environment, EntriesAreNameValuePairs) {
  Environment environment;
  environment.Set("B", "2=3");
  environment.Set("A", "");
  EXPECT_EQ(environment.Entries(), (std::vector<std::string>{"A=", "B=2=3"}));
}

}  // namespace
}  // namespace sluice::cli
