// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "scheduler/record/record.h"

#include <gtest/gtest.h>

namespace sluice::scheduler {
namespace {

TEST(EventNames, GoBothWays) {
  for (int kind = 0; kind <= static_cast<int>(EventKind::kLeave); ++kind) {
    const auto event = static_cast<EventKind>(kind);
    EXPECT_NE(EventName(event), "unknown") << kind;
    EXPECT_EQ(ParseEventName(EventName(event)), event);
  }
  EXPECT_FALSE(ParseEventName("unknown").has_value());
  EXPECT_FALSE(ParseEventName("").has_value());
}

}  // namespace
}  // namespace sluice::scheduler
