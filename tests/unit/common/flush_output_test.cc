// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "common/flush_output.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <memory>
#include <string>

namespace sluice {
namespace {

using Stream = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

Stream Open(const char* path) { return {std::fopen(path, "w"), std::fclose}; }

constexpr char kNoSpace[] = "the output could not be written: No space left on device";

TEST(FlushOutput, WhatWasWrittenIsNoError) {
  const Stream out = Open("/dev/null");
  EXPECT_TRUE(FlushOutput(out.get()).ok());
  std::fputs("text", out.get());
  EXPECT_TRUE(FlushOutput(out.get()).ok());
}

TEST(FlushOutput, AFullDeviceIsOneHoweverMuchWasPrinted) {
  for (const size_t length : {size_t{1}, size_t{4096}, size_t{1} << 20}) {
    const Stream out = Open("/dev/full");
    std::fputs(std::string(length, 'x').c_str(), out.get());
    const Status status = FlushOutput(out.get());
    EXPECT_EQ(status.code(), StatusCode::kUnavailable) << length;
    EXPECT_EQ(status.message(), kNoSpace) << length;
  }
}

TEST(FlushOutput, NothingPrintedIsNothingLost) {
  const Stream out = Open("/dev/full");
  EXPECT_TRUE(FlushOutput(out.get()).ok());
}

TEST(FlushOutput, AReaderThatHasGoneIsNoError) {
  const auto before = std::signal(SIGPIPE, SIG_IGN);
  for (const size_t length : {size_t{1}, size_t{1} << 20}) {
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    ::close(ends[0]);
    const Stream out(::fdopen(ends[1], "w"), std::fclose);
    std::fputs(std::string(length, 'x').c_str(), out.get());
    EXPECT_TRUE(FlushOutput(out.get()).ok()) << length;
  }
  std::signal(SIGPIPE, before);
}

}  // namespace
}  // namespace sluice
