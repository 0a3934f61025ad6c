// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "intercept/streams/open_captures.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "intercept/outside/holdings.h"

namespace sluice::test {
namespace {

const auto kStream = reinterpret_cast<CUstream>(0x1010);
const auto kOther = reinterpret_cast<CUstream>(0x1020);
const auto kContext = reinterpret_cast<CUcontext>(0xc0);
const auto kNext = reinterpret_cast<CUcontext>(0xd0);

void Begin(OpenCaptures* captures, CUstream stream, CUcontext context) {
  captures->Add();
  captures->Began(stream, context);
}
uint64_t Ending(CUcontext context) { return KeyOf(context) | kEnding; }

TEST(OpenCaptures, EndByTheirCallTheirStreamOrTheirContext) {
  OpenCaptures captures;
  for (int i = 0; i < 3; ++i) Begin(&captures, kStream, kContext);
  Begin(&captures, kOther, kNext);
  captures.Ended(kStream, kContext);
  EXPECT_EQ(captures.load(), 3u);
  captures.StreamGone(kStream, kContext);
  EXPECT_EQ(captures.load(), 2u);
  captures.NameContext(KeyOf(kContext), Ending(kContext));
  captures.ContextGone(Ending(kContext));
  EXPECT_EQ(captures.load(), 1u) << "the other context's";
  captures.StreamGone(kStream, kContext);
  EXPECT_EQ(captures.load(), 1u) << "nothing was captured there";
  captures.Ended(kOther, kNext);
  EXPECT_EQ(captures.load(), 0u);
}

// A release of the primary context may be its end, or not: while that is open, captures in it go on
// and end.
TEST(OpenCaptures, EndInAContextThatMayBeEnding) {
  for (const CUstream stream : {kStream, CU_STREAM_PER_THREAD}) {
    OpenCaptures captures;
    Begin(&captures, stream, kContext);
    captures.NameContext(KeyOf(kContext), Ending(kContext));
    captures.Ended(stream, kContext);
    EXPECT_EQ(captures.load(), 0u);
    captures.NameContext(Ending(kContext), KeyOf(kContext));  // it lives
    Begin(&captures, kOther, kNext);
    captures.NameContext(KeyOf(kContext), Ending(kContext));
    captures.ContextGone(Ending(kContext));
    EXPECT_EQ(captures.load(), 1u) << "the one that ended before was taken for another one";
  }
}

// Handles come again at once: a stream of the next context may have that of one whose context the
// driver has ended, and nobody has heard of that yet.
TEST(OpenCaptures, OnAStreamWithTheHandleOfOneThatIsGoneIsAnotherOne) {
  for (const bool destroyed : {false, true}) {
    OpenCaptures captures;
    Begin(&captures, kStream, kContext);
    captures.NameContext(KeyOf(kContext), Ending(kContext));
    // Also the context's handle.
    const CUcontext next = destroyed ? kContext : kNext;
    Begin(&captures, kStream, next);
    destroyed ? captures.StreamGone(kStream, next) : captures.Ended(kStream, next);
    captures.ContextGone(Ending(kContext));
    EXPECT_EQ(captures.load(), 0u);
  }
}

TEST(OpenCaptures, BeyondThoseThereIsRoomForEndByTheirCallAlone) {
  constexpr uint32_t kMany = 100;
  OpenCaptures captures;
  for (uint32_t i = 0; i < kMany; ++i) Begin(&captures, kStream, kContext);
  EXPECT_EQ(captures.load(), kMany);
  captures.NameContext(KeyOf(kContext), Ending(kContext));
  captures.ContextGone(Ending(kContext));
  EXPECT_LT(captures.load(), kMany);
  EXPECT_GT(captures.load(), 0u);
  while (captures.load() > 0) captures.Ended(kStream, kContext);
  // Ended with their context already: not to be taken for another's.
  Begin(&captures, kOther, kNext);
  captures.Ended(kStream, kContext);
  EXPECT_EQ(captures.load(), 1u);
}

// One thread captures while another one's contexts end under captures of theirs.
TEST(OpenCaptures, BesideTheEndOfAnotherContext) {
  constexpr int kRounds = 200'000;
  OpenCaptures captures;
  std::atomic<bool> stop{false};
  std::thread other([&] {
    while (!stop.load()) {
      Begin(&captures, kOther, kNext);
      captures.NameContext(KeyOf(kNext), Ending(kNext));
      captures.ContextGone(Ending(kNext));
    }
  });
  for (int i = 0; i < kRounds && !::testing::Test::HasFailure(); ++i) {
    Begin(&captures, kStream, kContext);
    EXPECT_GT(captures.load(), 0u) << "this one was taken for the other's";
    captures.Ended(kStream, kContext);
  }
  stop = true;
  other.join();
  EXPECT_EQ(captures.load(), 0u);
}

TEST(OpenCaptures, AreExcludedOnlyWhereThereIsNone) {
  OpenCaptures captures;
  EXPECT_TRUE(captures.Exclude());
  EXPECT_TRUE(captures.Exclude()) << "another thread's";
  captures.Admit();
  EXPECT_TRUE(captures.excluded());
  captures.Admit();
  EXPECT_FALSE(captures.excluded());
  captures.Add();
  EXPECT_FALSE(captures.Exclude());
  EXPECT_FALSE(captures.excluded());
  captures.Remove();
  EXPECT_TRUE(captures.Exclude());
  captures.ForgetHolder();  // a child of which that thread is no part
  EXPECT_FALSE(captures.excluded());
}

}  // namespace
}  // namespace sluice::test
