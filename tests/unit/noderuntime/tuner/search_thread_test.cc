// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/tuner/search_thread.h"

#include <thread>

#include "tests/unit/noderuntime/tuner/tasks.h"

namespace sluice::tuner {
namespace {

SearchResult Await(SearchThread* thread) {
  while (true) {
    if (std::optional<SearchResult> found = thread->Take()) return *std::move(found);
    std::this_thread::yield();
  }
}

TEST(SearchThread, AnswersAsTheSearchItself) {
  SearchThread thread;
  EXPECT_FALSE(thread.Take().has_value());
  for (const uint32_t layers : {20u, 12u}) {
    const SearchTask task = TwoTriangles(layers);
    thread.Begin(task);
    const SearchResult found = Await(&thread);
    const SearchResult expected = RunSearch(task, {});
    ASSERT_TRUE(found.ok() && expected.ok());
    EXPECT_EQ(found->temporal, expected->temporal);
    EXPECT_EQ(found->tried.size(), expected->tried.size());
    EXPECT_FALSE(thread.Take().has_value()) << "an answer comes once";
  }
}

/// Jobs change faster than the model runs: only the last question is answered.
TEST(SearchThread, AnswersOnlyTheLastOne) {
  SearchThread thread;
  for (int i = 0; i < 20; ++i) thread.Begin(TwoTriangles(24));
  thread.Begin(TwoTriangles(8));
  const SearchResult found = Await(&thread);
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->temporal, RunSearch(TwoTriangles(8), {})->temporal);
}

TEST(SearchThread, ForgetsWhatWasDropped) {
  SearchThread thread;
  thread.Begin(TwoTriangles(24));
  thread.Drop();
  thread.Begin(TwoTriangles(8));
  EXPECT_EQ(Await(&thread)->temporal, RunSearch(TwoTriangles(8), {})->temporal);
  EXPECT_FALSE(thread.Take().has_value());
}

TEST(SearchThread, EndsWhileItSearches) {
  for (int i = 0; i < 10; ++i) {
    SearchThread thread;
    thread.Begin(TwoTriangles(40));
  }
}

}  // namespace
}  // namespace sluice::tuner
