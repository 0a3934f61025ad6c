// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "noderuntime/gateway/metrics.h"

#include <gtest/gtest.h>
#include <prometheus/text_serializer.h>

#include <sstream>

namespace sluice::gateway {
namespace {

TEST(Metrics, AreWhatPrometheusReads) {
  GpuView first;
  first.up = true;
  first.uuid = "GPU-a";
  first.bypassed_pods = 2;
  first.bypassed_others = 1;
  GpuView second;
  second.number = 1;
  std::ostringstream text;
  prometheus::TextSerializer().Serialize(text, MetricsOf({first, second}));
  EXPECT_EQ(text.str(),
            "# HELP sluice_up Whether the GPU's daemon answers\n"
            "# TYPE sluice_up gauge\n"
            "sluice_up{gpu=\"0\"} 1\n"
            "sluice_up{gpu=\"1\"} 0\n"
            "# HELP sluice_bypassed_processes_total Processes found on the GPU without Sluice's "
            "library\n"
            "# TYPE sluice_bypassed_processes_total counter\n"
            "sluice_bypassed_processes_total{gpu=\"0\",uuid=\"GPU-a\",of=\"pod\"} 2\n"
            "sluice_bypassed_processes_total{gpu=\"0\",uuid=\"GPU-a\",of=\"other\"} 1\n");
}

}  // namespace
}  // namespace sluice::gateway
