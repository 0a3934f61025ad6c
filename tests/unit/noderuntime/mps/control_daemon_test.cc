// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// What the integration test with the stand-in does not reach: programs that are none.
#include "noderuntime/mps/control_daemon.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "common/mps_folder.h"
#include "tests/support/temp_folder.h"

namespace sluice::mps {
namespace {

mode_t ModeOf(const std::string& path) {
  struct stat info = {};
  return ::stat(path.c_str(), &info) == 0 ? info.st_mode & 07777 : 0;
}

TEST(MpsControlDaemon, AProgramThatIsNoneIsRefusedInWords) {
  const testing::TempFolder folder;
  EXPECT_EQ(CheckProgram(folder / "none").message(),
            "--mps-control '" + (folder / "none") +
                "': allowed: a program that can be run here; there is no such file (--compute "
                "timeslice needs none)");
  EXPECT_EQ(CheckProgram(folder.path()).code(), StatusCode::kInvalidArgument);
  std::ofstream(folder / "text") << "text";
  EXPECT_NE(CheckProgram(folder / "text").message().find("this file cannot"), std::string::npos);
  EXPECT_TRUE(CheckProgram("/bin/sh").ok());
}

TEST(MpsControlDaemon, OneThatCannotBeStartedIsTriedLaterAndLater) {
  const testing::TempFolder folder;
  ControlDaemon control({folder / "none", folder / "mps", "GPU-1"});
  EXPECT_EQ(control.Start(1'000'000'000), supervisor::Restarts::kFirstNs);
  EXPECT_EQ(control.pid(), 0);
  // Not yet: what is left of it.
  EXPECT_EQ(control.Start(1'000'000'001), supervisor::Restarts::kFirstNs - 1);
  EXPECT_EQ(control.Start(2'000'000'000), 2 * supervisor::Restarts::kFirstNs);
  EXPECT_EQ(ModeOf(folder / "mps"), 0711u);
  EXPECT_EQ(ModeOf(MpsPipeFolder(folder / "mps", "GPU-1")), 0755u);
  EXPECT_EQ(ModeOf(MpsLogFolder(folder / "mps", "GPU-1")), 0700u);
}

TEST(MpsControlDaemon, OneThatDoesNotRunNeedsNoEnd) {
  ControlDaemon control({"/none", "/none", "GPU-1"});
  control.AskToEnd();
  control.End(0);
  control.Look(0);
  EXPECT_EQ(control.pid(), 0);
}

}  // namespace
}  // namespace sluice::mps
