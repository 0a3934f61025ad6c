// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <cstring>
#include <set>

#include "common/cuda/driver_api.h"
#include "simgpu/driver/capture.h"
#include "simgpu/driver/graph_params.h"
#include "simgpu/driver/launch.h"
#include "simgpu/driver/modules.h"

using namespace sluice::simgpu;  // NOLINT(google-build-using-namespace): the driver's own names

namespace {

CUresult IssueLaunch(Launch launch, CUstream handle, bool per_thread) {
  Context* context = nullptr;
  CUresult result = CurrentContext(&context);
  if (result != CUDA_SUCCESS) return result;
  result = ResolveFunction(&launch.function, context);
  if (result != CUDA_SUCCESS) return result;
  result = CheckShape(launch);
  if (result != CUDA_SUCCESS) return result;
  // Other work is done in the context of its stream; a kernel belongs to one.
  if (handle > CU_STREAM_PER_THREAD && IsLive(handle) && handle->context != context) {
    return CUDA_ERROR_INVALID_HANDLE;
  }
  const uint32_t bytes = launch.function->arg_bytes;
  if (bytes > kMostArgBytes) return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;

  CommandQueue::Lock lock(context->mutex);
  CUstream stream = nullptr;
  bool capturing = false;
  result = context->ResolveToCapture(handle, per_thread, &stream, &capturing);
  if (result != CUDA_SUCCESS) return result;
  if (capturing) {
    lock.unlock();
    KernelWork work;
    result = KernelFrom(launch, &work);
    work.priority = stream->priority;
    return result == CUDA_SUCCESS ? CaptureNode(stream, std::move(work)) : result;
  }
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
  bool capturing = false;
  result = context->ResolveToCapture(handle, per_thread, &stream, &capturing);
  if (result != CUDA_SUCCESS) return result;
  if (capturing) {
    lock.unlock();
    return CaptureNode(stream, HostWork{fn, user_data});
  }
  Command command{};
  command.kind = CommandKind::kHostFunction;
  command.host.ticket = context->ExpectHostFunction([fn, user_data] { fn(user_data); });
  if (context->Issue(stream, &command, lock) != 0) return CUDA_SUCCESS;
  context->ForgetHostFunction(command.host.ticket);
  return context->queue().error();
}

/// Unlike a host function it is also called, with the error, when the context has failed.
CUresult AddCallback(CUstream handle, CUstreamCallback callback, void* user_data, unsigned flags,
                     bool per_thread) {
  Context* context = nullptr;
  CUresult result = CurrentContext(&context);
  if (result != CUDA_SUCCESS) return result;
  if (callback == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  CommandQueue::Lock lock(context->mutex);
  CUstream stream = nullptr;
  result = context->Resolve(handle, per_thread, &stream);
  if (result != CUDA_SUCCESS) return result;
  Command command{};
  command.kind = CommandKind::kHostFunction;
  command.flags = kEvenInFailure;
  command.host.ticket =
      context->ExpectHostFunction([=] { callback(handle, context->queue().error(), user_data); });
  if (context->Issue(stream, &command, lock) != 0) return CUDA_SUCCESS;
  context->ForgetHostFunction(command.host.ticket);
  return context->queue().error();
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

// The device headers here have no way to synchronise a grid, so a kernel that would need its blocks
// resident together does not compile, and any other runs as it always does.
CUresult cuLaunchCooperativeKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                                   unsigned by, unsigned bz, unsigned shared_bytes, CUstream stream,
                                   void** params) {
  return IssueLaunch({f, {gx, gy, gz}, {bx, by, bz}, shared_bytes, params, nullptr}, stream, false);
}

CUresult cuLaunchCooperativeKernel_ptsz(CUfunction f, unsigned gx, unsigned gy, unsigned gz,
                                        unsigned bx, unsigned by, unsigned bz,
                                        unsigned shared_bytes, CUstream stream, void** params) {
  return IssueLaunch({f, {gx, gy, gz}, {bx, by, bz}, shared_bytes, params, nullptr}, stream, true);
}

// Each on a device and in a stream of its own, and never in the default one, which would not say
// where.
CUresult cuLaunchCooperativeKernelMultiDevice(CUDA_LAUNCH_PARAMS* launches, unsigned count,
                                              unsigned flags) {
  constexpr unsigned kNoSync = 3;  // neither before the launches nor behind them
  Driver* driver = Driver::Get();
  if (driver == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  if (launches == nullptr || count == 0 || count > driver->devices.size() || flags > kNoSync) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  std::set<const Device*> seen;
  for (unsigned i = 0; i < count; ++i) {
    const CUstream stream = launches[i].hStream;
    if (stream == nullptr || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    if (!IsLive(stream)) return CUDA_ERROR_INVALID_HANDLE;
    if (!seen.insert(stream->context->device()).second) return CUDA_ERROR_INVALID_DEVICE;
  }
  CUresult result = CUDA_SUCCESS;
  for (unsigned i = 0; i < count && result == CUDA_SUCCESS; ++i) {
    const CUDA_LAUNCH_PARAMS& l = launches[i];
    ContextStack().push_back({l.hStream->context, l.hStream->green});
    result = IssueLaunch({l.function,
                          {l.gridDimX, l.gridDimY, l.gridDimZ},
                          {l.blockDimX, l.blockDimY, l.blockDimZ},
                          l.sharedMemBytes,
                          l.kernelParams,
                          nullptr},
                         l.hStream, false);
    ContextStack().pop_back();
  }
  return result;
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

CUresult cuStreamAddCallback(CUstream stream, CUstreamCallback callback, void* user_data,
                             unsigned flags) {
  return AddCallback(stream, callback, user_data, flags, false);
}

CUresult cuStreamAddCallback_ptsz(CUstream stream, CUstreamCallback callback, void* user_data,
                                  unsigned flags) {
  return AddCallback(stream, callback, user_data, flags, true);
}
