// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "simgpu/driver/mem_ops.h"

#include "simgpu/driver/driver.h"

namespace sluice::simgpu {

CUresult MemOpCommand(const CUstreamBatchMemOpParams& op, Command* out) {
  uint32_t width = 8;
  bool wait = false;
  switch (op.operation) {
    case CU_STREAM_MEM_OP_BARRIER:
    case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES:
      out->kind = CommandKind::kNothing;
      return CUDA_SUCCESS;
    case CU_STREAM_MEM_OP_WAIT_VALUE_32:
      width = 4;
      [[fallthrough]];
    case CU_STREAM_MEM_OP_WAIT_VALUE_64:
      wait = true;
      break;
    case CU_STREAM_MEM_OP_WRITE_VALUE_32:
      width = 4;
      [[fallthrough]];
    case CU_STREAM_MEM_OP_WRITE_VALUE_64:
      break;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
  // Both kinds of parameters lie alike.
  const auto& p = op.writeValue;
  const uint64_t value = width == 4 ? p.value : p.value64;
  constexpr unsigned kWaitFlags = 3 | 1u << 30;  // a comparison (GEQ, EQ, AND, NOR) and FLUSH
  if (wait && (p.flags & ~kWaitFlags) != 0) return CUDA_ERROR_INVALID_VALUE;
  if (wait && p.flags != CU_STREAM_WAIT_VALUE_GEQ && p.flags != CU_STREAM_WAIT_VALUE_EQ) {
    return NotSupported("cuStreamWaitValue with other flags than GEQ and EQ");
  }
  if (!wait && p.flags != CU_STREAM_WRITE_VALUE_DEFAULT) {
    return NotSupported("cuStreamWriteValue with flags");
  }
  if (p.address % width != 0 ||
      (!IsDeviceAddress(p.address) && !Driver::Get()->Pinned(p.address, width))) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  out->kind = wait ? CommandKind::kWaitValue : CommandKind::kWriteValue;
  const bool equal = wait && p.flags == CU_STREAM_WAIT_VALUE_EQ;
  out->value = {p.address, value, equal ? 1u : 0u, width};
  return CUDA_SUCCESS;
}

}  // namespace sluice::simgpu
