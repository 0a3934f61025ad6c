// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "common/cuda/driver_api.h"
#include "simgpu/driver/driver.h"
#include "simgpu/module/image.h"

using sluice::UniqueFd;
using namespace sluice::simgpu;  // NOLINT(google-build-using-namespace): the driver's own names

CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  Context* context = nullptr;
  const CUresult current = CurrentContext(&context);
  if (current != CUDA_SUCCESS) return current;
  if (module == nullptr || image == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const sluice::Result<std::string> object = DecodeImage(image);
  if (!object.ok()) {
    fprintf(stderr, "simulated GPU: cuModuleLoadData: %s\n", object.status().message().c_str());
    return object.status().code() == sluice::StatusCode::kFailedPrecondition
               ? CUDA_ERROR_NO_BINARY_FOR_GPU
               : CUDA_ERROR_INVALID_IMAGE;
  }
  const UniqueFd file(memfd_create("simgpu-module", MFD_CLOEXEC));
  if (!file.valid() ||
      write(file.get(), object->data(), object->size()) != static_cast<ssize_t>(object->size())) {
    return CUDA_ERROR_OPERATING_SYSTEM;
  }
  ControlRequest request{};
  request.op = ControlOp::kLoadModule;
  const ControlReply reply = context->link()->Call(request, file.get());
  if (reply.result != CUDA_SUCCESS) {
    fprintf(stderr, "simulated GPU: cuModuleLoadData: %s\n", reply.text);
    return static_cast<CUresult>(reply.result);
  }
  CUmodule loaded = context->driver()->modules.New();
  loaded->context = context;
  loaded->module = reply.a;
  loaded->functions.clear();
  *module = loaded;
  return CUDA_SUCCESS;
}

// No option changes what a compiled host object does.
CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned, CUjit_option*, void**) {
  return cuModuleLoadData(module, image);
}

CUresult cuModuleUnload(CUmodule module) {
  Context* context = nullptr;
  CUresult result = CurrentContext(&context);
  if (result != CUDA_SUCCESS) return result;
  if (!IsLive(module) || module->context != context) return CUDA_ERROR_INVALID_HANDLE;
  std::vector<uint64_t> marks;
  {
    const std::lock_guard lock(context->mutex);
    marks = context->AllMarks();
  }
  // Its code may still be queued.
  result = context->WaitFor(marks);
  ControlRequest request{};
  request.op = ControlOp::kUnloadModule;
  request.a = module->module;
  context->link()->Call(request);
  for (const CUfunction function : module->functions) context->driver()->functions.Delete(function);
  context->driver()->modules.Delete(module);
  return result;
}

CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  Context* context = nullptr;
  const CUresult current = CurrentContext(&context);
  if (current != CUDA_SUCCESS) return current;
  ControlRequest request{};
  if (function == nullptr || name == nullptr || *name == 0 || strlen(name) >= sizeof request.text) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (!IsLive(module) || module->context != context) return CUDA_ERROR_INVALID_HANDLE;
  const std::lock_guard lock(context->mutex);
  for (const CUfunction known : module->functions) {
    if (known->name == name) {
      *function = known;
      return CUDA_SUCCESS;
    }
  }
  request.op = ControlOp::kGetFunction;
  request.a = module->module;
  strcpy(request.text, name);
  const ControlReply reply = context->link()->Call(request);
  if (reply.result != CUDA_SUCCESS) return static_cast<CUresult>(reply.result);
  CUfunction found = context->driver()->functions.New();
  found->context = context;
  found->name = name;
  found->function = static_cast<uint32_t>(reply.a);
  found->sizes.assign(reply.sizes, reply.sizes + reply.b);
  found->offsets.clear();
  found->arg_bytes = 0;
  for (const uint32_t size : found->sizes) {
    const uint32_t offset = AlignParam(found->arg_bytes, size);
    found->offsets.push_back(offset);
    found->arg_bytes = offset + size;
  }
  module->functions.push_back(found);
  *function = found;
  return CUDA_SUCCESS;
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr*, size_t*, CUmodule, const char*) {
  return NotSupported("cuModuleGetGlobal");
}

CUresult cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction function) {
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!IsLive(function)) return CUDA_ERROR_INVALID_HANDLE;
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      *value = 1024;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
      *value = 0;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      *value = function->max_dynamic_shared;
      return CUDA_SUCCESS;
  }
  return NotSupported("cuFuncGetAttribute for this attribute");
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
  if (!IsLive(function)) return CUDA_ERROR_INVALID_HANDLE;
  if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) {
    return NotSupported("cuFuncSetAttribute for this attribute");
  }
  constexpr int kMostShared = 160 * 1024;
  if (value < 0 || value > kMostShared) return CUDA_ERROR_INVALID_VALUE;
  function->max_dynamic_shared = value;
  return CUDA_SUCCESS;
}

CUresult cuFuncGetName(const char** name, CUfunction function) {
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!IsLive(function)) return CUDA_ERROR_INVALID_HANDLE;
  *name = function->name.c_str();
  return CUDA_SUCCESS;
}
