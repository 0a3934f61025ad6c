// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
// The traces of data/traces keep the promises of the README beside them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "scheduler/trace/at_batch.h"
#include "scheduler/trace/parse.h"
#include "scheduler/trace/write.h"
#include "tests/unit/scheduler/trace/trace_files.h"

namespace sluice::scheduler::trace {
namespace {

/// A line of the README's table.
struct Figures {
  std::string model;
  size_t operators;
  size_t allocs;
  double persistent_mib;
  double peak_mib;
  double mean_over_peak;
  double peak_at;  // share of the operators
  Phase peak_phase;
};

const Figures kFigures[] = {
    {"bert-base", 802, 1096, 1260.1, 4995.5, 0.40, 0.39, Phase::kBackward},
    {"gnmt", 3721, 3438, 751.4, 967.3, 0.66, 0.30, Phase::kBackward},
    {"inception_v3", 780, 1035, 207.4, 3006.7, 0.76, 0.56, Phase::kBackward},
    {"nasnetalarge", 2980, 3978, 677.9, 31453.3, 0.64, 0.51, Phase::kForward},
    {"resnet110", 893, 1109, 13.2, 257.0, 0.66, 0.56, Phase::kBackward},
    {"resnet152", 1193, 1560, 459.8, 5429.1, 0.66, 0.57, Phase::kBackward},
    {"resnet50", 411, 540, 195.2, 2635.8, 0.72, 0.57, Phase::kBackward},
    {"rhn", 7272, 5851, 121.2, 321.6, 0.56, 0.25, Phase::kBackward},
    {"tacotron2", 9344, 7872, 322.7, 639.5, 0.52, 0.31, Phase::kBackward},
};

double Rounded(double value, double unit) { return std::round(value / unit) * unit; }

double Mib(uint64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

/// What lives while each operator runs.
std::vector<uint64_t> LoadByOperator(const Trace& trace, const BatchTrace& sized) {
  std::vector<uint64_t> loads;
  for (size_t i = 0; i < trace.events.size(); ++i) {
    if (trace.events[i].kind == EventKind::kOperator) loads.push_back(sized.load[i]);
  }
  return loads;
}

TEST(TraceData, ComesBackByteForByte) {
  for (const Figures& wanted : kFigures) {
    const std::string text = ReadTraceFile(wanted.model);
    const Result<Trace> trace = ParseTrace(text);
    ASSERT_TRUE(trace.ok()) << wanted.model << ": " << trace.status().message();
    EXPECT_TRUE(WriteTrace(*trace) == text) << wanted.model;
    ASSERT_NE((*trace).Find("model"), nullptr);
    EXPECT_EQ(*(*trace).Find("model"), wanted.model);
  }
}

TEST(TraceData, HasTheFiguresOfItsTable) {
  for (const Figures& wanted : kFigures) {
    SCOPED_TRACE(wanted.model);
    const Result<Trace> trace = ParseTrace(ReadTraceFile(wanted.model));
    ASSERT_TRUE(trace.ok()) << trace.status().message();
    const Result<BatchTrace> sized = AtBatch(*trace, 32);
    ASSERT_TRUE(sized.ok()) << sized.status().message();
    const BatchTrace& at32 = *sized;

    EXPECT_EQ((*trace).operators.size(), wanted.operators);
    EXPECT_EQ(std::count_if((*trace).events.begin(), (*trace).events.end(),
                            [](const Event& event) { return event.kind == EventKind::kAlloc; }),
              static_cast<std::ptrdiff_t>(wanted.allocs));
    EXPECT_NEAR(Rounded(Mib(at32.persistent_bytes), 0.1), wanted.persistent_mib, 0.01);
    EXPECT_NEAR(Rounded(Mib(at32.peak_bytes), 0.1), wanted.peak_mib, 0.01);
    EXPECT_EQ(at32.load[at32.peak_event], at32.peak_bytes);
    EXPECT_EQ(at32.load.back(), 0u);

    const std::vector<uint64_t> loads = LoadByOperator(*trace, at32);
    double sum = 0;
    for (const uint64_t load : loads) sum += static_cast<double>(load);
    const double count = static_cast<double>(loads.size());
    EXPECT_NEAR(Rounded(sum / count / static_cast<double>(at32.peak_bytes), 0.01),
                wanted.mean_over_peak, 0.001);
    const auto peak = std::max_element(loads.begin(), loads.end()) - loads.begin();
    EXPECT_NEAR(Rounded(static_cast<double>(peak) / count, 0.01), wanted.peak_at, 0.001);
    EXPECT_EQ((*trace).operators[static_cast<size_t>(peak)].phase, wanted.peak_phase);
  }
}

}  // namespace
}  // namespace sluice::scheduler::trace
