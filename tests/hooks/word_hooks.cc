// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <optional>

#include "tests/hooks/copy_fixture.h"

// Words that a stream writes and waits for: counted as copies of no bytes, because a stream that
// only they were queued on has work, and a job that stands still must not touch its memory.

namespace sluice::hooks {
namespace {

class Word : public Copy {
 protected:
  void SetUp() override {
    Copy::SetUp();
    reached_.emplace();
    reached_->Store(1);  // nothing is waited for
    ops_[0].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
    ops_[0].writeValue.address = to_;
    ops_[0].writeValue.value = 7;
    ops_[1].waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_64;
    ops_[1].waitValue.address = reached_->device();
    ops_[1].waitValue.value64 = 1;
    ops_[1].waitValue.flags = CU_STREAM_WAIT_VALUE_GEQ;
  }
  void TearDown() override {
    EXPECT_CU(cuCtxSynchronize());
    reached_.reset();
    Copy::TearDown();
  }
  std::optional<SharedWord> reached_;  // as long as there is a context
  CUstreamBatchMemOpParams ops_[2] = {};
};

#define WORD_HOOK_TEST(symbol, ...) COPY_HOOK_TEST_F(Word, symbol, __VA_ARGS__)

WORD_HOOK_TEST(cuStreamWriteValue32_v2, nullptr, to_, 7, 0)
WORD_HOOK_TEST(cuStreamWriteValue32_v2_ptsz, nullptr, to_, 7, 0)
WORD_HOOK_TEST(cuStreamWriteValue64_v2, nullptr, to_, 7, 0)
WORD_HOOK_TEST(cuStreamWriteValue64_v2_ptsz, nullptr, to_, 7, 0)
WORD_HOOK_TEST(cuStreamWaitValue32_v2, nullptr, reached_->device(), 1, CU_STREAM_WAIT_VALUE_GEQ)
WORD_HOOK_TEST(cuStreamWaitValue32_v2_ptsz, nullptr, reached_->device(), 1,
               CU_STREAM_WAIT_VALUE_GEQ)
WORD_HOOK_TEST(cuStreamWaitValue64_v2, nullptr, reached_->device(), 1, CU_STREAM_WAIT_VALUE_GEQ)
WORD_HOOK_TEST(cuStreamWaitValue64_v2_ptsz, nullptr, reached_->device(), 1,
               CU_STREAM_WAIT_VALUE_GEQ)
WORD_HOOK_TEST(cuStreamBatchMemOp_v2, nullptr, 2, ops_, 0)
WORD_HOOK_TEST(cuStreamBatchMemOp_v2_ptsz, nullptr, 2, ops_, 0)

}  // namespace
}  // namespace sluice::hooks
