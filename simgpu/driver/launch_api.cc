// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <cstring>

#include "common/cuda/driver_api.h"
#include "simgpu/driver/driver.h"

using namespace sluice::simgpu;  // NOLINT(google-build-using-namespace): the driver's own names

namespace {

constexpr uint32_t kMostArgBytes = 64 * 1024;

struct Launch {
  CUfunction function;
  unsigned grid[3];
  unsigned block[3];
  unsigned shared_bytes;
  void** params;
  void** extra;
};

CUresult CheckShape(const Launch& launch) {
  const unsigned* g = launch.grid;
  const unsigned* b = launch.block;
  if (g[0] == 0 || g[1] == 0 || g[2] == 0 || b[0] == 0 || b[1] == 0 || b[2] == 0 ||
      g[0] > 0x7fffffff || g[1] > 65535 || g[2] > 65535 || b[0] > 1024 || b[1] > 1024 ||
      b[2] > 64 || static_cast<uint64_t>(b[0]) * b[1] * b[2] > 1024) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (launch.shared_bytes > static_cast<unsigned>(launch.function->max_dynamic_shared)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

/// Copies the arguments as the caller gave them, now: it may reuse its memory after the call.
CUresult PackArguments(const Launch& launch, unsigned char* target) {
  const CUfunction f = launch.function;
  if (f->arg_bytes == 0) return CUDA_SUCCESS;
  if (launch.params != nullptr) {
    for (size_t i = 0; i < f->sizes.size(); ++i) {
      if (launch.params[i] == nullptr) return CUDA_ERROR_INVALID_VALUE;
      memcpy(target + f->offsets[i], launch.params[i], f->sizes[i]);
    }
    return CUDA_SUCCESS;
  }
  if (launch.extra == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const void* buffer = nullptr;
  size_t bytes = 0;
  for (void** option = launch.extra; *option != CU_LAUNCH_PARAM_END; option += 2) {
    if (*option == CU_LAUNCH_PARAM_BUFFER_POINTER) {
      buffer = option[1];
    } else if (*option == CU_LAUNCH_PARAM_BUFFER_SIZE) {
      bytes = *static_cast<const size_t*>(option[1]);
    } else {
      return CUDA_ERROR_INVALID_VALUE;
    }
  }
  if (buffer == nullptr || bytes < f->arg_bytes) return CUDA_ERROR_INVALID_VALUE;
  memcpy(target, buffer, f->arg_bytes);
  return CUDA_SUCCESS;
}

CUresult IssueLaunch(const Launch& launch, CUstream handle, bool per_thread) {
  Context* context = nullptr;
  CUresult result = CurrentContext(&context);
  if (result != CUDA_SUCCESS) return result;
  if (!IsLive(launch.function)) return CUDA_ERROR_INVALID_HANDLE;
  if (launch.function->context != context) return CUDA_ERROR_INVALID_CONTEXT;
  result = CheckShape(launch);
  if (result != CUDA_SUCCESS) return result;
  const uint32_t bytes = launch.function->arg_bytes;
  if (bytes > kMostArgBytes) return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;

  CommandQueue::Lock lock(context->mutex);
  CUstream stream = nullptr;
  result = context->Resolve(handle, per_thread, &stream);
  if (result != CUDA_SUCCESS) return result;
  Command command{};
  command.kind = CommandKind::kKernel;
  command.kernel.function = launch.function->function;
  memcpy(command.kernel.grid, launch.grid, sizeof launch.grid);
  memcpy(command.kernel.block, launch.block, sizeof launch.block);
  command.kernel.shared_bytes = launch.shared_bytes;
  command.kernel.arg_bytes = bytes;
  if (bytes <= kInlineArgs) {
    result = PackArguments(launch, command.kernel.args);
    if (result != CUDA_SUCCESS) return result;
    return context->Issue(stream, &command, lock) != 0 ? CUDA_SUCCESS : context->queue().error();
  }
  const std::optional<uint64_t> staged = context->queue().Stage(bytes, lock);
  if (!staged) return context->queue().error();
  command.flags |= kSourceStaged;
  command.kernel.staged_args = *staged;
  result = PackArguments(launch, context->queue().Staged(*staged));
  const uint64_t id = result == CUDA_SUCCESS ? context->Issue(stream, &command, lock) : 0;
  context->queue().ReleaseStaged(*staged, stream->slot, id);
  if (result != CUDA_SUCCESS) return result;
  return id != 0 ? CUDA_SUCCESS : context->queue().error();
}

CUresult IssueHostFunction(CUstream handle, CUhostFn fn, void* user_data, bool per_thread) {
  Context* context = nullptr;
  CUresult result = CurrentContext(&context);
  if (result != CUDA_SUCCESS) return result;
  if (fn == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CommandQueue::Lock lock(context->mutex);
  CUstream stream = nullptr;
  result = context->Resolve(handle, per_thread, &stream);
  if (result != CUDA_SUCCESS) return result;
  Command command{};
  command.kind = CommandKind::kHostFunction;
  const uint64_t id = context->Issue(stream, &command, lock);
  if (id == 0) return context->queue().error();
  context->ExpectHostFunction(id, [fn, user_data] { fn(user_data); });
  return CUDA_SUCCESS;
}

CUresult LaunchEx(const CUlaunchConfig* config, CUfunction f, void** params, void** extra,
                  bool per_thread) {
  if (config == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (unsigned i = 0; i < config->numAttrs; ++i) {
    if (config->attrs[i].id != 0) return NotSupported("cuLaunchKernelEx with attributes");
  }
  const Launch launch{f,
                      {config->gridDimX, config->gridDimY, config->gridDimZ},
                      {config->blockDimX, config->blockDimY, config->blockDimZ},
                      config->sharedMemBytes,
                      params,
                      extra};
  return IssueLaunch(launch, config->hStream, per_thread);
}

}  // namespace

CUresult cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                        unsigned by, unsigned bz, unsigned shared_bytes, CUstream stream,
                        void** params, void** extra) {
  return IssueLaunch({f, {gx, gy, gz}, {bx, by, bz}, shared_bytes, params, extra}, stream, false);
}

CUresult cuLaunchKernel_ptsz(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                             unsigned by, unsigned bz, unsigned shared_bytes, CUstream stream,
                             void** params, void** extra) {
  return IssueLaunch({f, {gx, gy, gz}, {bx, by, bz}, shared_bytes, params, extra}, stream, true);
}

CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction f, void** params, void** extra) {
  return LaunchEx(config, f, params, extra, false);
}

CUresult cuLaunchKernelEx_ptsz(const CUlaunchConfig* config, CUfunction f, void** params,
                               void** extra) {
  return LaunchEx(config, f, params, extra, true);
}

CUresult cuLaunchHostFunc(CUstream stream, CUhostFn fn, void* user_data) {
  return IssueHostFunction(stream, fn, user_data, false);
}

CUresult cuLaunchHostFunc_ptsz(CUstream stream, CUhostFn fn, void* user_data) {
  return IssueHostFunction(stream, fn, user_data, true);
}
