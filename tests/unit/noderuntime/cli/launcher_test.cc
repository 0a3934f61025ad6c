// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/cli/launcher.h"

#include <gtest/gtest.h>

namespace sluice::cli {
namespace {

TEST(JobEnvironment, NamesTheSocketAndPreloadsTheLibrary) {
  Environment base;
  base.Set("LD_PRELOAD", "/other.so");
  base.Set("PATH", "/bin");
  const auto made = JobEnvironment(base, Layout::At("/opt/sluice/bin"), "/run/jobs/7/sluice.sock");
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(made->Get("SLUICE_SOCKET"), "/run/jobs/7/sluice.sock");
  EXPECT_EQ(made->Get("LD_PRELOAD"), "/opt/sluice/lib/libsluice.so:/other.so");
  EXPECT_EQ(made->Get("PATH"), "/bin");
}

TEST(JobEnvironment, AnOuterJobsSocketIsReplaced) {
  Environment base;
  base.Set("SLUICE_SOCKET", "/outer");
  base.Set("LD_PRELOAD", "/s/lib/libsluice.so");
  const auto made = JobEnvironment(base, Layout::At("/s/bin"), "/inner");
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(made->Get("SLUICE_SOCKET"), "/inner");
  EXPECT_EQ(made->Get("LD_PRELOAD"), "/s/lib/libsluice.so");
}

TEST(JobEnvironment, RefusesAPathThatPreloadingCannotExpress) {
  for (const char* bin : {"/my folder/bin", "/a:b/bin"}) {
    const auto made = JobEnvironment({}, Layout::At(bin), "/s");
    ASSERT_FALSE(made.ok()) << bin;
    EXPECT_NE(made.status().message().find("LD_PRELOAD"), std::string::npos);
  }
}

TEST(CheckProgram, AnswersAsAShellDoes) {
  EXPECT_EQ(CheckProgram("sh", "/nowhere:/bin:/usr/bin"), 0);
  EXPECT_EQ(CheckProgram("/bin/sh", ""), 0);
  EXPECT_EQ(CheckProgram("no-such-program", "/bin:/usr/bin"), kExitNotFound);
  EXPECT_EQ(CheckProgram("/no/such/program", "/bin"), kExitNotFound);
  EXPECT_EQ(CheckProgram("/etc/passwd", "/bin"), kExitCannotExecute);
  EXPECT_EQ(CheckProgram("passwd", "/nowhere:/etc"), kExitCannotExecute);
  EXPECT_EQ(CheckProgram("/etc", "/bin"), kExitCannotExecute);
  EXPECT_EQ(CheckProgram("", "/bin"), kExitNotFound);
}

}  // namespace
}  // namespace sluice::cli
