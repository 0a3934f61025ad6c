// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// Of no source: what a sanitized build is for is seen in it, in our code and in what of the library
// becomes part of it (cmake/sanitizer-ignorelist.txt).
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <vector>

namespace sluice {
namespace {

/// So that nothing is known when this is compiled.
template <class T>
T Opaque(T value) {
  volatile T hidden = value;
  return hidden;
}

void AddToTheMost() { Opaque(Opaque(std::numeric_limits<int>::max()) + Opaque(1)); }
void SumUpInTheLibrary() {
  const std::vector<int> two = {std::numeric_limits<int>::max(), Opaque(1)};
  Opaque(std::accumulate(two.begin(), two.end(), 0));
}
void MakeALongTimeFiner() {
  const std::chrono::milliseconds long_time(Opaque(std::numeric_limits<int64_t>::max() / 2));
  Opaque(std::chrono::nanoseconds(long_time).count());
}
void ReadWhatIsGone() {
  auto block = std::make_unique<int>(1);
  const int* gone = block.get();
  block.reset();
  Opaque(*gone);
}
void ReadBeyondTheEnd() {
  const std::vector<int> two(2);
  Opaque(two[Opaque<size_t>(2)]);
}
void ReadNothing() {
  const std::optional<int> none;
  Opaque(*none);
}

TEST(SanitizerDeathTest, Arithmetic) { EXPECT_DEATH(AddToTheMost(), "signed integer overflow"); }

TEST(SanitizerDeathTest, ArithmeticOfTheLibrary) {
  EXPECT_DEATH(SumUpInTheLibrary(), "signed integer overflow");
  EXPECT_DEATH(MakeALongTimeFiner(), "signed integer overflow");
}

TEST(SanitizerDeathTest, ABlockThatIsGone) {
  EXPECT_DEATH(ReadWhatIsGone(), "heap-use-after-free");
}

TEST(SanitizerDeathTest, WhatTheLibraryIsHanded) {
  EXPECT_DEATH(ReadBeyondTheEnd(), "Assertion");
  EXPECT_DEATH(ReadNothing(), "Assertion");
}

}  // namespace
}  // namespace sluice
