// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/cli/frameworks.h"

#include <gtest/gtest.h>

namespace sluice::cli {
namespace {

using Lines = std::vector<std::string>;

TEST(Frameworks, AsyncAsksAllOfThemForStreamOrderedMemory) {
  Environment environment;
  const Lines said = SteerFrameworks(Frameworks::kAsync, &environment);
  EXPECT_EQ(
      environment.Entries(),
      (Lines{"PYTORCH_ALLOC_CONF=backend:cudaMallocAsync",
             "PYTORCH_CUDA_ALLOC_CONF=backend:cudaMallocAsync", "TF_FORCE_GPU_ALLOW_GROWTH=true",
             "TF_GPU_ALLOCATOR=cuda_malloc_async", "XLA_PYTHON_CLIENT_ALLOCATOR=cuda_async",
             "XLA_PYTHON_CLIENT_PREALLOCATE=false"}));
  ASSERT_EQ(said.size(), 6u);
  EXPECT_EQ(said[0], "set PYTORCH_CUDA_ALLOC_CONF=backend:cudaMallocAsync");
}

TEST(Frameworks, ExpandableIsPyTorchsAlone) {
  Environment environment;
  SteerFrameworks(Frameworks::kExpandable, &environment);
  EXPECT_EQ(environment.Get("PYTORCH_CUDA_ALLOC_CONF"), "expandable_segments:True");
  EXPECT_EQ(environment.Get("PYTORCH_ALLOC_CONF"), "expandable_segments:True");
  EXPECT_EQ(environment.Get("SLUICE_PHYSICAL"), "lease") << "else its segments are charged";
  EXPECT_EQ(environment.Get("TF_GPU_ALLOCATOR"), "cuda_malloc_async");
}

TEST(Frameworks, NoneSetsNothing) {
  Environment environment;
  EXPECT_TRUE(SteerFrameworks(Frameworks::kNone, &environment).empty());
  EXPECT_TRUE(environment.Entries().empty());
}

TEST(Frameworks, WhatTheUserSetStays) {
  Environment environment;
  environment.Set("XLA_PYTHON_CLIENT_PREALLOCATE", "true");
  environment.Set("TF_GPU_ALLOCATOR", "");
  const Lines said = SteerFrameworks(Frameworks::kAsync, &environment);
  EXPECT_EQ(environment.Get("XLA_PYTHON_CLIENT_PREALLOCATE"), "true");
  EXPECT_EQ(environment.Get("TF_GPU_ALLOCATOR"), "") << "set to nothing is set";
  EXPECT_EQ(said.back(), "kept XLA_PYTHON_CLIENT_PREALLOCATE=true, which was set already");
  EXPECT_EQ(environment.Get("XLA_PYTHON_CLIENT_ALLOCATOR"), "cuda_async");
}

// Releases differ in which of PyTorch's two names they prefer.
TEST(Frameworks, PyTorchsTwoNamesAreOneSetting) {
  for (const char* set : {"PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"}) {
    Environment environment;
    environment.Set(set, "max_split_size_mb:128");
    SteerFrameworks(Frameworks::kAsync, &environment);
    const bool first = environment.Get("PYTORCH_CUDA_ALLOC_CONF").has_value();
    const bool second = environment.Get("PYTORCH_ALLOC_CONF").has_value();
    EXPECT_NE(first, second) << set;
    EXPECT_EQ(environment.Get(set), "max_split_size_mb:128");
  }
}

TEST(Frameworks, ExpandableSegmentsNeedUnitsThatAreHandles) {
  EXPECT_TRUE(FrameworksDaemonFlags(Frameworks::kAsync).empty());
  EXPECT_TRUE(FrameworksDaemonFlags(Frameworks::kNone).empty());
  EXPECT_EQ(FrameworksDaemonFlags(Frameworks::kExpandable),
            (Lines{"--lease-unit", "2097152", "--handle", "2097152"}));
}

TEST(Frameworks, ADaemonThatLendsNoneOfThemIsToldOf) {
  const auto why = [](Frameworks how, const char* status) { return WhyNotLent(how, status); };
  const char* const usual = R"({"unit_bytes": 8388608, "handle_bytes": 33554432})";
  const std::string line = why(Frameworks::kExpandable, usual);
  EXPECT_NE(line.find("a lease unit of 8.0 MiB and handles of 32.0 MiB"), std::string::npos)
      << line;
  EXPECT_NE(line.find("--lease-unit 2MiB --handle 2MiB"), std::string::npos) << line;
  EXPECT_EQ(why(Frameworks::kAsync, usual), "");
  EXPECT_EQ(why(Frameworks::kExpandable, R"({"unit_bytes": 2097152, "handle_bytes": 2097152})"),
            "");
  EXPECT_NE(why(Frameworks::kExpandable, R"({"unit_bytes": 4194304, "handle_bytes": 4194304})"), "")
      << "the small segments stay outside";
  EXPECT_NE(why(Frameworks::kExpandable, R"({"unit_bytes": 2097152, "handle_bytes": 33554432})"),
            "");
  EXPECT_EQ(why(Frameworks::kExpandable, R"({"unit_bytes": 8388608})"), "") << "an older daemon";
  EXPECT_EQ(why(Frameworks::kExpandable, "not json"), "");
}

TEST(Frameworks, NamesAreThoseOfTheCommandLine) {
  EXPECT_EQ(FrameworksNamed("async"), Frameworks::kAsync);
  EXPECT_EQ(FrameworksNamed("expandable"), Frameworks::kExpandable);
  EXPECT_EQ(FrameworksNamed("none"), Frameworks::kNone);
  EXPECT_EQ(FrameworksNamed("native"), std::nullopt);
}

}  // namespace
}  // namespace sluice::cli
