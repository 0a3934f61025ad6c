// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/cli/observed_run.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "noderuntime/cli/offline/files.h"
#include "noderuntime/cli/work_dir.h"

namespace sluice::cli {
namespace {

TEST(TraceFile, IsNamedAfterTheProgramUnlessItIsGiven) {
  RunOptions options;
  options.command = {"/opt/bin/train", "--model", "a"};
  EXPECT_EQ(TraceFile(options), "train.trace") << "in the current folder";
  options.command = {"python3"};
  EXPECT_EQ(TraceFile(options), "python3.trace");
  options.trace = "/tmp/mine";
  EXPECT_EQ(TraceFile(options), "/tmp/mine");
}

TEST(TraceFile, IsTheNextThatIsNotThereUnlessItIsGiven) {
  Result<WorkDir> work = WorkDir::Create("");
  ASSERT_TRUE(work.ok()) << work.status().message();
  const std::string folder = std::filesystem::path(work->File("x")).parent_path().string();
  RunOptions options;
  options.command = {"/opt/bin/train"};
  for (const char* name : {"train.trace", "train.2.trace", "train.3.trace"}) {
    EXPECT_EQ(TraceFile(options, folder), work->File(name));
    ASSERT_TRUE(WriteWholeFile(work->File(name), "").ok());
  }
  options.trace = work->File("train.trace");
  EXPECT_EQ(TraceFile(options, folder), options.trace) << "and is refused";
}

}  // namespace
}  // namespace sluice::cli
