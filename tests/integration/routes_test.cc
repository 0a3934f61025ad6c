// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <gtest/gtest.h>

#include "tests/support/test_bed.h"

namespace sluice::testing {
namespace {

constexpr const char* kLimit = "4194304";
constexpr const char* kMore = "6291456";
constexpr const char* kLess = "1048576";

/// The ways in which programs find the driver's functions. The limit holds for each of them only if
/// the library stands in each.
class Routes : public ::testing::TestWithParam<const char*> {
 protected:
  std::vector<std::string> Command(const char* bytes) const {
    const std::string route = GetParam();
    return {Program(route == "linked" ? "ROUTES_LINKED" : "ROUTES"), route, bytes};
  }
};

TEST_P(Routes, AreTheDriverItselfWithoutSluice) {
  BedOptions options;
  options.start_noded = false;
  const TestBed bed(options);
  const cli::JobProcess job =
      bed.Run({.label = "job", .command = Command(kMore), .under_sluice = false});
  ASSERT_TRUE(job.status().ok()) << Describe(job);
  EXPECT_EQ(Value(job.out(), "sync"), "CUDA_SUCCESS");
  EXPECT_EQ(Value(job.out(), "async"), "CUDA_SUCCESS");
  EXPECT_EQ(Value(job.out(), "total"), "67108864");
}

TEST_P(Routes, AreHooked) {
  const TestBed bed;
  const cli::JobProcess job =
      bed.Run({.label = "job", .command = Command(kMore), .run_flags = {"--limit", kLimit}});
  ASSERT_TRUE(job.status().ok()) << Describe(job);
  EXPECT_EQ(Value(job.out(), "sync"), "CUDA_ERROR_OUT_OF_MEMORY") << Describe(job);
  EXPECT_EQ(Value(job.out(), "async"), "CUDA_ERROR_OUT_OF_MEMORY") << Describe(job);
  EXPECT_EQ(Value(job.out(), "total"), kLimit) << Describe(job);
}

TEST_P(Routes, ServeMemoryInsideTheLimit) {
  TestBed bed;
  const cli::JobProcess job =
      bed.Run({.label = "job", .command = Command(kLess), .run_flags = {"--limit", kLimit}});
  ASSERT_TRUE(job.status().ok()) << Describe(job);
  EXPECT_EQ(Value(job.out(), "sync"), "CUDA_SUCCESS");
  EXPECT_EQ(Value(job.out(), "async"), "CUDA_SUCCESS");
  bed.StopDaemon();  // the log is complete
  const auto job_id = bed.log().FindJob("routes");
  ASSERT_TRUE(job_id);
  EXPECT_TRUE(bed.log().Find(scheduler::EventKind::kGrant, *job_id) ||
              bed.log().Find(scheduler::EventKind::kGate, *job_id));
}

INSTANTIATE_TEST_SUITE_P(All, Routes, ::testing::Values("linked", "dlsym", "proc1", "proc2"),
                         [](const ::testing::TestParamInfo<const char*>& route) {
                           return std::string(route.param);
                         });

}  // namespace
}  // namespace sluice::testing
