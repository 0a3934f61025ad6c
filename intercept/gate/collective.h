// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

namespace sluice {

/// Whether a kernel of this name (mangled or not) waits on its GPU for kernels on others, as far as
/// names tell: those of NCCL and RCCL (`ncclDevKernel_*`, before 2.19 `ncclKernel_*`, of symmetric
/// memory `ncclSym*Kernel_*`), MSCCL++, NVSHMEM's own, and the one- and two-shot all-reduce that
/// vLLM and SGLang bring along. Not every kernel that waits has a name that says so.
bool IsCollective(const char* kernel);

}  // namespace sluice
