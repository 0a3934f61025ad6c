// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/cli/offline/files.h"

#include <gtest/gtest.h>

#include "noderuntime/cli/work_dir.h"

namespace sluice::cli {
namespace {

TEST(FilesTest, ComeBackAsTheyWereWritten) {
  const Result<WorkDir> work = WorkDir::Create("");
  ASSERT_TRUE(work.ok()) << work.status().message();
  const std::string path = work->File("file");
  const std::string bytes(200'000, '\0');
  for (const std::string& text : {bytes, std::string("short\n"), std::string()}) {
    ASSERT_TRUE(WriteWholeFile(path, text).ok());
    const Result<std::string> read = ReadWholeFile(path);
    ASSERT_TRUE(read.ok()) << read.status().message();
    EXPECT_TRUE(*read == text);
  }
}

TEST(FilesTest, WhatFailsNamesTheFile) {
  EXPECT_EQ(ReadWholeFile("/no/such").status().message(), "/no/such: No such file or directory");
  EXPECT_EQ(ReadWholeFile("/").status().message(), "/: Is a directory");
  EXPECT_EQ(WriteWholeFile("/no/such/file", "x").message(),
            "/no/such/file: No such file or directory");
  EXPECT_EQ(WriteWholeFile("/dev/full", "x").message(), "/dev/full: No space left on device");
}

}  // namespace
}  // namespace sluice::cli
