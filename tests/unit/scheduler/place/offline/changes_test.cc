// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/place/offline/changes.h"

#include <gtest/gtest.h>

namespace sluice::scheduler {
namespace {

TEST(ChangesTest, WhatEndsComesBeforeWhatBegins) {
  const std::vector<Buffer> buffers = {{4, 9, 1}, {1, 4, 1}, {4, 5, 1}};
  std::string story;
  for (const Change& change : ChangesOf(buffers)) {
    story += std::to_string(change.time) + (change.begins ? "+" : "-") +
             std::to_string(change.buffer) + " ";
  }
  EXPECT_EQ(story, "1+1 4-1 4+0 4+2 5-2 9-0 ");
}

}  // namespace
}  // namespace sluice::scheduler
