// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "tests/hooks/churn_worker.h"

// A green context of the worker's own: a part of the context that all share, with streams of its
// own. Only they end with it: what cuMemAlloc gave in it is the shared one's.

namespace sluice::hooks {

void Worker::OpenGreen() {
  green_ = {};
  green_.green = NewGreen();
  EXPECT_CU(cuCtxFromGreenCtx(&green_.context, green_.green));
  green_.fill = shared_.fill;
  const Inside inside(green_.context);
  EXPECT_CU(cuEventCreate(&green_.event, 0));
  EXPECT_CU(cuGreenCtxStreamCreate(&green_.streams[0], green_.green, CU_STREAM_NON_BLOCKING, 0));
  EXPECT_CU(cuStreamCreate(&green_.streams[1], CU_STREAM_NON_BLOCKING));
  calls_ += 5;
  ++greens_made_;
}

/// What was freed on its streams comes back, although nothing is waited for.
void Worker::CloseGreen() {
  while (!green_.blocks.empty()) {
    const BlockOf last = green_.blocks.back();
    if (Pick(2) == 0) {
      FreeIn(&green_);
      continue;
    }
    green_.blocks.pop_back();
    if (last.stream != nullptr) {
      TakeOver(&green_, last);
    } else {
      blocks_.push_back(last);
    }
  }
  const bool streams_first = Pick(2) == 0;
  const auto destroy_streams = [this](CUresult expected) {
    for (const CUstream stream : green_.streams) EXPECT_EQ(cuStreamDestroy_v2(stream), expected);
  };
  if (streams_first) destroy_streams(CUDA_SUCCESS);
  EXPECT_CU(cuEventDestroy_v2(green_.event));
  EXPECT_CU(cuGreenCtxDestroy(green_.green));
  if (!streams_first) destroy_streams(CUDA_ERROR_CONTEXT_IS_DESTROYED);
  calls_ += 4;
  green_ = {};
}

}  // namespace sluice::hooks
