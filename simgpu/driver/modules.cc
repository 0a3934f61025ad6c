// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "simgpu/driver/modules.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>

#include "simgpu/module/image.h"
#include "simgpu/module/kernel_names.h"

namespace sluice::simgpu {

CUresult DecodeFor(const char* call, const void* image, std::string* object) {
  Result<std::string> decoded = DecodeImage(image);
  if (decoded.ok()) {
    *object = std::move(*decoded);
    return CUDA_SUCCESS;
  }
  fprintf(stderr, "simulated GPU: %s: %s\n", call, decoded.status().message().c_str());
  return decoded.status().code() == StatusCode::kFailedPrecondition ? CUDA_ERROR_NO_BINARY_FOR_GPU
                                                                    : CUDA_ERROR_INVALID_IMAGE;
}

CUresult ReadImageFile(const char* file, std::string* image) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream) return CUDA_ERROR_FILE_NOT_FOUND;
  std::ostringstream content;
  content << stream.rdbuf();
  *image = std::move(content).str();
  return CUDA_SUCCESS;
}

CUresult LoadModule(Context* context, const char* call, const std::string& object, CUmodule* out) {
  const UniqueFd file(memfd_create("simgpu-module", MFD_CLOEXEC));
  if (!file.valid() ||
      write(file.get(), object.data(), object.size()) != static_cast<ssize_t>(object.size())) {
    return CUDA_ERROR_OPERATING_SYSTEM;
  }
  ControlRequest request{};
  request.op = ControlOp::kLoadModule;
  const ControlReply reply = context->link()->Call(request, file.get());
  if (reply.result != CUDA_SUCCESS) {
    fprintf(stderr, "simulated GPU: %s: %s\n", call, reply.text);
    return static_cast<CUresult>(reply.result);
  }
  CUmodule loaded = context->driver()->modules.New();
  loaded->context = context;
  loaded->module = reply.a;
  loaded->kernels = KernelNames(object);
  loaded->functions.clear();
  loaded->library = nullptr;
  *out = loaded;
  return CUDA_SUCCESS;
}

CUresult UnloadModule(CUmodule module) {
  Context* context = module->context;
  CUresult result = CUDA_SUCCESS;
  if (!context->destroyed()) {
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
  }
  for (const CUfunction function : module->functions) context->driver()->functions.Delete(function);
  context->driver()->modules.Delete(module);
  return result;
}

CUresult FindFunction(CUmodule module, const char* name, CUfunction* out) {
  Context* context = module->context;
  ControlRequest request{};
  if (name == nullptr || *name == 0 || strlen(name) >= sizeof request.text) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const std::lock_guard lock(context->mutex);
  for (const CUfunction known : module->functions) {
    if (known->name == name) {
      *out = known;
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
  found->module = module;
  found->name = name;
  found->function = static_cast<uint32_t>(reply.a);
  found->sizes.assign(reply.sizes, reply.sizes + reply.b);
  found->offsets.clear();
  found->arg_bytes = 0;
  found->max_dynamic_shared = kDefaultDynamicShared;
  found->parts = {};
  for (const uint32_t size : found->sizes) {
    const uint32_t offset = AlignParam(found->arg_bytes, size);
    found->offsets.push_back(offset);
    found->arg_bytes = offset + size;
  }
  module->functions.push_back(found);
  *out = found;
  return CUDA_SUCCESS;
}

CUresult ParamInfo(CUfunction function, size_t index, size_t* offset, size_t* bytes) {
  // How a program finds the number of parameters: it asks until this.
  if (offset == nullptr || index >= function->sizes.size()) return CUDA_ERROR_INVALID_VALUE;
  *offset = function->offsets[index];
  if (bytes != nullptr) *bytes = function->sizes[index];
  return CUDA_SUCCESS;
}

CUresult GetAttribute(CUfunction function, CUfunction_attribute attribute, int* value) {
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      *value = 1024;
      return CUDA_SUCCESS;
    // Static shared, constant and local memory of a kernel are the host object's own.
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
    case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
      *value = 0;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
      *value = function->context->driver()->machine().compute_capability;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      *value = function->max_dynamic_shared;
      return CUDA_SUCCESS;
  }
  return NotSupported("this function attribute");
}

CUresult CheckAttribute(CUfunction_attribute attribute, int value) {
  if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) {
    return NotSupported("setting this function attribute");
  }
  constexpr int kMostShared = 160 * 1024;
  return value < 0 || value > kMostShared ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

}  // namespace sluice::simgpu
