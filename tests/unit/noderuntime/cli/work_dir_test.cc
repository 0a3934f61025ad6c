// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/cli/work_dir.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace sluice::cli {
namespace {

TEST(WorkDir, IsPrivateAndRemovedWithEverythingInIt) {
  std::string path;
  {
    const auto work = WorkDir::Create("");
    ASSERT_TRUE(work.ok()) << work.status().message();
    path = work->path();
    struct stat info = {};
    ASSERT_EQ(::stat(path.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0700u);
    std::filesystem::create_directory(work->File("sub"));
    std::ofstream(work->File("sub/file")) << "x";
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(WorkDir, AKeptFolderStaysAndMustBeEmpty) {
  const auto outer = WorkDir::Create("");
  ASSERT_TRUE(outer.ok());
  const std::string kept = outer->File("kept");
  {
    const auto work = WorkDir::Create(kept);
    ASSERT_TRUE(work.ok()) << work.status().message();
    std::ofstream(work->File("file")) << "x";
  }
  EXPECT_TRUE(std::filesystem::exists(kept + "/file"));
  const auto again = WorkDir::Create(kept);
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.status().message(),
            "--keep: " + kept + " cannot be used; allowed: a folder that is empty or absent");
  EXPECT_FALSE(WorkDir::Create(kept + "/file").ok());
}

// In a process of its own: the signals stay blocked.
TEST(InterruptsDeathTest, ASignalBecomesReadable) {
  const auto body = [] {
    const auto interrupts = Interrupts::Catch();
    if (!interrupts.ok() || interrupts->Pending()) ::_exit(1);
    ::kill(::getpid(), SIGINT);
    ::_exit(interrupts->Pending() ? 0 : 2);
  };
  EXPECT_EXIT(body(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace sluice::cli
