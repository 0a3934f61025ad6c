// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/cli/observed_run.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace sluice::cli
