// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// The size of what Prometheus gets of a GPU with 64 jobs (bench/scrape measures the time).
#include "bench/busy_status.h"

#include <gtest/gtest.h>
#include <prometheus/text_serializer.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "noderuntime/gateway/metrics.h"

namespace sluice::gateway {
namespace {

constexpr size_t kMostBytes = size_t{1} << 20;

TEST(BusyStatus, ItsMetricsAreBounded) {
  const Result<GpuView> gpu = ParseStatus(bench::BusyStatus().dump());
  ASSERT_TRUE(gpu.ok());
  ASSERT_EQ(gpu->jobs.size(), bench::kBusyJobs);
  ASSERT_EQ(gpu->ended->size(), bench::kBusyEnded);
  std::ostringstream out;
  prometheus::TextSerializer().Serialize(out, MetricsOf("gpu-node-017.example.com", {*gpu}));
  EXPECT_NE(out.str().find("sluice_loans_total{"), std::string::npos);
  EXPECT_LE(out.str().size(), kMostBytes);
}

}  // namespace
}  // namespace sluice::gateway
