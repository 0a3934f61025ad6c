// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <gtest/gtest.h>

#include "simgpu/sharing/gpu_folders.h"

namespace sluice::simgpu {
namespace {

using Gpus = std::vector<uint32_t>;

const std::vector<std::string> kUuids = {"GPU-0123-aa", "GPU-0145-bb", "GPU-9876-cc"};

Gpus Seen(const char* text) { return VisibleGpus(text, kUuids); }

TEST(VisibleGpus, AreAllUnlessSomebodySaysOtherwise) {
  EXPECT_EQ(Seen(nullptr), (Gpus{0, 1, 2}));
  EXPECT_EQ(Seen(""), Gpus{});
}

TEST(VisibleGpus, KeepTheOrderOfTheirNumbers) {
  EXPECT_EQ(Seen("2,0"), (Gpus{2, 0}));
  EXPECT_EQ(Seen(" 1 ,\t2 "), (Gpus{1, 2}));
  EXPECT_EQ(Seen("+1"), Gpus{1});
  EXPECT_EQ(Seen("1x,0"), (Gpus{1, 0}));  // as strtoul reads it
}

TEST(VisibleGpus, EndAtTheFirstThatIsNone) {
  EXPECT_EQ(Seen("1,3,0"), Gpus{1});
  EXPECT_EQ(Seen("0,-1,2"), Gpus{0});
  EXPECT_EQ(Seen("-1"), Gpus{});
  EXPECT_EQ(Seen("NoDevFiles"), Gpus{});
  EXPECT_EQ(Seen("2,,1"), Gpus{2});
  EXPECT_EQ(Seen("1,GPU-0123-aa"), Gpus{1});
  EXPECT_EQ(Seen("99999999999999999999,0"), Gpus{});
}

TEST(VisibleGpus, AreNamedByUuidsAndTheirBeginnings) {
  EXPECT_EQ(Seen("GPU-9876-cc,GPU-0123-aa"), (Gpus{2, 0}));
  EXPECT_EQ(Seen("GPU-9,GPU-014"), (Gpus{2, 1}));
  EXPECT_EQ(Seen("GPU-01"), Gpus{});  // two begin like this
  EXPECT_EQ(Seen("GPU-"), Gpus{});
  EXPECT_EQ(Seen("GPU-9,GPU-5,GPU-014"), Gpus{2});
  EXPECT_EQ(Seen("GPU-9,0"), Gpus{2});
}

TEST(VisibleGpus, WhoIsNamedTwiceHidesAll) {
  EXPECT_EQ(Seen("0,1,0"), Gpus{});
  EXPECT_EQ(Seen("GPU-9,GPU-98"), Gpus{});
  EXPECT_EQ(Seen("0,7,0"), Gpus{0});  // it had ended before
}

}  // namespace
}  // namespace sluice::simgpu
