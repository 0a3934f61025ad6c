// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "common/cuda/driver_api.h"
#include "simgpu/driver/capture.h"
#include "simgpu/driver/driver.h"
#include "simgpu/driver/mem_ops.h"

using namespace sluice::simgpu;  // NOLINT(google-build-using-namespace): the driver's own names

namespace {

CUresult IssueAll(CUstream handle, const CUstreamBatchMemOpParams* ops, unsigned count,
                  bool per_thread) {
  Context* context = nullptr;
  CUresult result = StreamsOwnContext(handle, &context);
  if (result != CUDA_SUCCESS) return result;
  // All are checked before the first one is issued.
  std::vector<Command> commands(count);
  for (unsigned i = 0; i < count; ++i) {
    result = MemOpCommand(ops[i], &commands[i]);
    if (result != CUDA_SUCCESS) return result;
  }
  CommandQueue::Lock lock(context->mutex);
  CUstream stream = nullptr;
  bool capturing = false;
  result = context->ResolveToCapture(handle, per_thread, &stream, &capturing);
  if (result != CUDA_SUCCESS) return result;
  if (capturing) {
    lock.unlock();
    return CaptureMemOps(stream, {ops, ops + count});
  }
  for (Command& command : commands) {
    if (context->Issue(stream, &command, lock) == 0) return context->queue().error();
  }
  return CUDA_SUCCESS;
}

CUresult One(CUstreamBatchMemOpType operation, CUstream stream, CUdeviceptr addr, cuuint64_t value,
             unsigned flags, bool per_thread) {
  CUstreamBatchMemOpParams op{};
  op.writeValue.operation = operation;
  op.writeValue.address = addr;
  op.writeValue.value64 = value;  // the narrow value is its lower half
  op.writeValue.flags = flags;
  return IssueAll(stream, &op, 1, per_thread);
}

CUresult Batch(CUstream stream, unsigned count, const CUstreamBatchMemOpParams* params,
               unsigned flags, bool per_thread) {
  constexpr unsigned kMostOps = 256;
  if (count == 0 || count > kMostOps || params == nullptr || flags != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return IssueAll(stream, params, count, per_thread);
}

}  // namespace

CUresult cuStreamWriteValue64_v2(CUstream stream, CUdeviceptr addr, cuuint64_t value,
                                 unsigned flags) {
  return One(CU_STREAM_MEM_OP_WRITE_VALUE_64, stream, addr, value, flags, false);
}
CUresult cuStreamWriteValue64_v2_ptsz(CUstream stream, CUdeviceptr addr, cuuint64_t value,
                                      unsigned flags) {
  return One(CU_STREAM_MEM_OP_WRITE_VALUE_64, stream, addr, value, flags, true);
}
CUresult cuStreamWaitValue64_v2(CUstream stream, CUdeviceptr addr, cuuint64_t value,
                                unsigned flags) {
  return One(CU_STREAM_MEM_OP_WAIT_VALUE_64, stream, addr, value, flags, false);
}
CUresult cuStreamWaitValue64_v2_ptsz(CUstream stream, CUdeviceptr addr, cuuint64_t value,
                                     unsigned flags) {
  return One(CU_STREAM_MEM_OP_WAIT_VALUE_64, stream, addr, value, flags, true);
}
CUresult cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr addr, cuuint32_t value,
                                 unsigned flags) {
  return One(CU_STREAM_MEM_OP_WRITE_VALUE_32, stream, addr, value, flags, false);
}
CUresult cuStreamWriteValue32_v2_ptsz(CUstream stream, CUdeviceptr addr, cuuint32_t value,
                                      unsigned flags) {
  return One(CU_STREAM_MEM_OP_WRITE_VALUE_32, stream, addr, value, flags, true);
}
CUresult cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr addr, cuuint32_t value,
                                unsigned flags) {
  return One(CU_STREAM_MEM_OP_WAIT_VALUE_32, stream, addr, value, flags, false);
}
CUresult cuStreamWaitValue32_v2_ptsz(CUstream stream, CUdeviceptr addr, cuuint32_t value,
                                     unsigned flags) {
  return One(CU_STREAM_MEM_OP_WAIT_VALUE_32, stream, addr, value, flags, true);
}
CUresult cuStreamBatchMemOp_v2(CUstream stream, unsigned count, CUstreamBatchMemOpParams* params,
                               unsigned flags) {
  return Batch(stream, count, params, flags, false);
}
CUresult cuStreamBatchMemOp_v2_ptsz(CUstream stream, unsigned count,
                                    CUstreamBatchMemOpParams* params, unsigned flags) {
  return Batch(stream, count, params, flags, true);
}
