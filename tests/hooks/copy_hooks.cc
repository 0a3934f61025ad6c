// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "tests/hooks/copy_fixture.h"

// The daemon sees each copy once, whatever function it was made with.

namespace sluice::hooks {
namespace {

COPY_HOOK_TEST(cuMemcpyHtoD_v2, to_, host_, sizeof host_)
COPY_HOOK_TEST(cuMemcpyHtoD_v2_ptds, to_, host_, sizeof host_)
COPY_HOOK_TEST(cuMemcpyDtoH_v2, host_, from_, sizeof host_)
COPY_HOOK_TEST(cuMemcpyDtoH_v2_ptds, host_, from_, sizeof host_)
COPY_HOOK_TEST(cuMemcpyDtoD_v2, to_, from_, 64)
COPY_HOOK_TEST(cuMemcpyDtoD_v2_ptds, to_, from_, 64)
COPY_HOOK_TEST(cuMemcpyHtoDAsync_v2, to_, host_, sizeof host_, nullptr)
COPY_HOOK_TEST(cuMemcpyHtoDAsync_v2_ptsz, to_, host_, sizeof host_, nullptr)
COPY_HOOK_TEST(cuMemcpyDtoHAsync_v2, host_, from_, sizeof host_, nullptr)
COPY_HOOK_TEST(cuMemcpyDtoHAsync_v2_ptsz, host_, from_, sizeof host_, nullptr)
COPY_HOOK_TEST(cuMemcpyDtoDAsync_v2, to_, from_, 64, nullptr)
COPY_HOOK_TEST(cuMemcpyDtoDAsync_v2_ptsz, to_, from_, 64, nullptr)
COPY_HOOK_TEST(cuMemsetD8_v2, to_, 1, 64)
COPY_HOOK_TEST(cuMemsetD8_v2_ptds, to_, 1, 64)
COPY_HOOK_TEST(cuMemsetD32_v2, to_, 1, 64)
COPY_HOOK_TEST(cuMemsetD32_v2_ptds, to_, 1, 64)
COPY_HOOK_TEST(cuMemsetD8Async, to_, 1, 64, nullptr)
COPY_HOOK_TEST(cuMemsetD8Async_ptsz, to_, 1, 64, nullptr)
COPY_HOOK_TEST(cuMemsetD32Async, to_, 1, 64, nullptr)
COPY_HOOK_TEST(cuMemsetD32Async_ptsz, to_, 1, 64, nullptr)

}  // namespace
}  // namespace sluice::hooks
