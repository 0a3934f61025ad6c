// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "deviceplugin/cluster/patience.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>

#include <chrono>

#include "common/unique_fd.h"

namespace sluice::deviceplugin {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLong{600'000};  // no test waits so long

TEST(Patience, WaitsForWhatItIsToldTo) {
  const UniqueFd ready(::eventfd(1, EFD_CLOEXEC));
  EXPECT_TRUE(Patience(kLong, nullptr).Await(ready.get(), POLLIN).ok());
  EXPECT_TRUE(Patience(kLong, nullptr).Check().ok());
}

TEST(Patience, EndsWithItsTime) {
  const UniqueFd silent(::eventfd(0, EFD_CLOEXEC));
  const Status over = Patience(milliseconds(20), nullptr).Await(silent.get(), POLLIN);
  EXPECT_EQ(over.code(), StatusCode::kUnavailable);
  EXPECT_EQ(over.message(), "no answer within 20 ms");
  EXPECT_FALSE(Patience(milliseconds(0), nullptr).Check().ok());
}

TEST(Patience, EndsWhenItIsStopped) {
  const UniqueFd silent(::eventfd(0, EFD_CLOEXEC));
  int asked = 0;
  const std::function<bool()> third = [&asked] { return ++asked >= 3; };
  EXPECT_EQ(Patience(kLong, &third).Await(silent.get(), POLLIN).message(), "stopped");
  EXPECT_EQ(asked, 3);
  // Also of who is never kept waiting.
  EXPECT_EQ(Patience(kLong, &third).Check().message(), "stopped");
}

TEST(Patience, APartOfItEndsNoLaterThanAllOfIt) {
  const Patience all(kLong, nullptr);
  EXPECT_LE(all.AtMost(milliseconds(5'000)).left(), milliseconds(5'001));
  EXPECT_GT(all.AtMost(milliseconds(5'000)).left(), milliseconds(0));
  EXPECT_LE(Patience(milliseconds(5'000), nullptr).AtMost(kLong).left(), milliseconds(5'001));
  const std::function<bool()> now = [] { return true; };
  EXPECT_TRUE(Patience(kLong, &now).AtMost(milliseconds(5'000)).stopped());
}

}  // namespace
}  // namespace sluice::deviceplugin
