// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <gtest/gtest.h>

#include "scheduler/trace/parse.h"
#include "tools/replay/plan.h"

namespace sluice::replay {

/// A parameter (0), the batch (1), and two blocks (2, 3) of which one is updated in place.
inline constexpr char kSmallTrace[] =
    "# sluice-trace 1\n"
    "block 0 persistent 10 0\n"
    "block 1 input 0 4\n"
    "block 2 transient 1 100\n"
    "block 3 transient 0 8\n"
    "alloc 2\n"
    "op 0 mm.out forward 0 1000 0 100 r=1,0 w=2\n"
    "alloc 3\n"
    "op 1 add_ backward 0 0 400 40 r=0,2,3 w=3,2\n"
    "free 2\n"
    "op 2 mm.out optimizer 0 0 0 0 r=3 w=0\n"
    "free 3\n";

inline scheduler::trace::Trace SmallTrace(const char* text = kSmallTrace) {
  const Result<scheduler::trace::Trace> trace = scheduler::trace::ParseTrace(text);
  EXPECT_TRUE(trace.ok()) << trace.status().message();
  return trace.ok() ? *trace : scheduler::trace::Trace{};
}

/// 1000 FLOP and 100 bytes take 1 us each; nothing takes less than 50 ns.
inline constexpr Scaling kSmallScaling{1e9, 1e8, 50, 1, 1};

inline Plan SmallPlan(uint64_t batch = 2, const Scaling& scaling = kSmallScaling) {
  const Result<Plan> plan = MakePlan(SmallTrace(), batch, scaling);
  EXPECT_TRUE(plan.ok()) << plan.status().message();
  return plan.ok() ? *plan : Plan{};
}

}  // namespace sluice::replay
