// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "intercept/session/frame_check.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <random>

namespace sluice {
namespace {

using protocol::FrameType;

class FrameCheck : public ::testing::Test {
 protected:
  const char* Check(FrameType type, size_t bytes, size_t fds = 0) {
    frame_->header = MakeHeader(type, bytes, 1);
    return CheckFrame(*frame_, bytes, fds);
  }
  std::unique_ptr<Frame> frame_ = std::make_unique<Frame>();
};

TEST_F(FrameCheck, WellFormedFramesPass) {
  EXPECT_EQ(Check(FrameType::kWelcome, sizeof(protocol::Welcome), 4), nullptr);
  frame_->handles.count = 3;
  EXPECT_EQ(Check(FrameType::kHandles, sizeof(protocol::Handles), 3), nullptr);
  frame_->grant.extents = 2;
  EXPECT_EQ(Check(FrameType::kGrant, offsetof(protocol::Grant, extent) + 16), nullptr);
  frame_->grant.extents = protocol::kMaxExtentsPerFrame;
  EXPECT_EQ(Check(FrameType::kGrant, sizeof(protocol::Grant)), nullptr);
  EXPECT_EQ(Check(FrameType::kDeny, sizeof(protocol::Deny)), nullptr);
  EXPECT_EQ(Check(FrameType::kNotice, sizeof(protocol::Notice)), nullptr);
  EXPECT_EQ(Check(FrameType::kClose, sizeof(protocol::Close)), nullptr);
  EXPECT_EQ(Check(FrameType::kQuiesce, sizeof(protocol::Quiesce)), nullptr);
}

TEST_F(FrameCheck, EverySizeAndCountIsChecked) {
  EXPECT_NE(CheckFrame(*frame_, 0, 0), nullptr);
  EXPECT_NE(CheckFrame(*frame_, 15, 0), nullptr);
  EXPECT_NE(Check(FrameType::kWelcome, sizeof(protocol::Welcome), 3), nullptr);
  EXPECT_NE(Check(FrameType::kWelcome, sizeof(protocol::Welcome) + 1, 4), nullptr);
  frame_->handles.count = 0;
  EXPECT_NE(Check(FrameType::kHandles, sizeof(protocol::Handles), 0), nullptr);
  frame_->handles.count = 129;
  EXPECT_NE(Check(FrameType::kHandles, sizeof(protocol::Handles), 128), nullptr);
  frame_->grant.extents = protocol::kMaxExtentsPerFrame + 1;
  EXPECT_STREQ(Check(FrameType::kGrant, sizeof(protocol::Grant) + sizeof(protocol::Extent)),
               "a Grant has too many extents");
  frame_->grant.extents = 0xffffffff;
  EXPECT_NE(Check(FrameType::kGrant, offsetof(protocol::Grant, extent)), nullptr);
  frame_->grant.extents = 3;
  EXPECT_NE(Check(FrameType::kGrant, offsetof(protocol::Grant, extent) + 16), nullptr);
  EXPECT_NE(Check(FrameType::kNotice, sizeof(protocol::Notice), 1), nullptr);
  EXPECT_NE(Check(FrameType::kQuiesce, sizeof(protocol::Quiesce) + 8), nullptr);
  EXPECT_NE(Check(FrameType::kHello, sizeof(protocol::Hello)), nullptr);
  EXPECT_NE(Check(static_cast<FrameType>(999), 100), nullptr);
  frame_->header = MakeHeader(FrameType::kNotice, sizeof(protocol::Notice), 1);
  EXPECT_NE(CheckFrame(*frame_, sizeof(protocol::Notice) - 1, 0), nullptr);
  frame_->header.magic ^= 1;
  EXPECT_NE(CheckFrame(*frame_, sizeof(protocol::Notice), 0), nullptr);
}

TEST_F(FrameCheck, TextsAreTerminated) {
  memset(frame_->raw, 'x', sizeof frame_->raw);
  EXPECT_EQ(Check(FrameType::kDeny, sizeof(protocol::Deny)), nullptr);
  EXPECT_EQ(strlen(frame_->deny.text), protocol::kMaxTextBytes - 1);
  memset(frame_->raw, 'x', sizeof frame_->raw);
  EXPECT_EQ(Check(FrameType::kClose, sizeof(protocol::Close)), nullptr);
  EXPECT_EQ(strlen(frame_->close.text), protocol::kMaxTextBytes - 1);
}

TEST_F(FrameCheck, RandomBytesNeverPassUnlessTheyAreAFrame) {
  std::mt19937 random(11);
  for (int i = 0; i < 100'000; ++i) {
    for (size_t b = 0; b < 64; ++b) frame_->raw[b] = static_cast<uint8_t>(random());
    const size_t bytes = random() % 600;
    if (i % 2 == 0) {
      frame_->header = MakeHeader(static_cast<FrameType>(30 + random() % 10), bytes, 0);
    }
    if (CheckFrame(*frame_, bytes, random() % 5) != nullptr) continue;
    ASSERT_EQ(frame_->header.bytes, bytes);
    ASSERT_EQ(frame_->header.magic, protocol::kMagic);
    if (frame_->header.type == static_cast<uint16_t>(FrameType::kGrant)) {
      ASSERT_EQ(bytes, offsetof(protocol::Grant, extent) + 8 * frame_->grant.extents);
    }
  }
}

}  // namespace
}  // namespace sluice
