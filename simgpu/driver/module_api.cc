// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include "common/cuda/driver_api.h"
#include "simgpu/driver/modules.h"

using namespace sluice::simgpu;  // NOLINT(google-build-using-namespace): the driver's own names

namespace {

CUresult Load(const char* call, CUmodule* module, const void* image) {
  Context* context = nullptr;
  const CUresult current = CurrentContext(&context);
  if (current != CUDA_SUCCESS) return current;
  if (module == nullptr || image == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::string object;
  const CUresult decoded = DecodeFor(call, image, &object);
  return decoded == CUDA_SUCCESS ? LoadModule(context, call, object, module) : decoded;
}

/// A module of the current context.
CUresult Check(CUmodule module) {
  Context* context = nullptr;
  const CUresult current = CurrentContext(&context);
  if (current != CUDA_SUCCESS) return current;
  return IsLive(module) && module->context == context ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

}  // namespace

CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  return Load("cuModuleLoadData", module, image);
}

// No option changes what a compiled host object does.
CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned, CUjit_option*, void**) {
  return Load("cuModuleLoadDataEx", module, image);
}

CUresult cuModuleLoad(CUmodule* module, const char* file) {
  if (module == nullptr || file == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::string image;
  const CUresult read = ReadImageFile(file, &image);
  return read == CUDA_SUCCESS ? Load("cuModuleLoad", module, image.c_str()) : read;
}

CUresult cuModuleUnload(CUmodule module) {
  const CUresult checked = Check(module);
  if (checked != CUDA_SUCCESS) return checked;
  if (const CUresult unsafe = UnsafeInCapture(); unsafe != CUDA_SUCCESS) return unsafe;
  // A library's modules go with it.
  return module->library == nullptr ? UnloadModule(module) : CUDA_ERROR_NOT_PERMITTED;
}

CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  const CUresult checked = Check(module);
  if (checked != CUDA_SUCCESS) return checked;
  return function == nullptr ? CUDA_ERROR_INVALID_VALUE : FindFunction(module, name, function);
}

CUresult cuModuleGetFunctionCount(unsigned* count, CUmodule module) {
  const CUresult checked = Check(module);
  if (checked != CUDA_SUCCESS) return checked;
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *count = static_cast<unsigned>(module->kernels.size());
  return CUDA_SUCCESS;
}

CUresult cuModuleEnumerateFunctions(CUfunction* functions, unsigned count, CUmodule module) {
  CUresult result = Check(module);
  if (result != CUDA_SUCCESS) return result;
  if (functions == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
  for (unsigned i = 0; i < count && i < module->kernels.size(); ++i) {
    result = FindFunction(module, module->kernels[i].c_str(), &functions[i]);
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode* mode) {
  if (mode == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *mode = CU_MODULE_EAGER_LOADING;
  return CUDA_SUCCESS;
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr*, size_t*, CUmodule, const char*) {
  return NotSupported("cuModuleGetGlobal");
}

CUresult cuFuncGetModule(CUmodule* module, CUfunction function) {
  if (module == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!IsLive(function)) return CUDA_ERROR_INVALID_HANDLE;
  *module = function->module;
  return CUDA_SUCCESS;
}

CUresult cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction function) {
  if (!IsLive(function)) return CUDA_ERROR_INVALID_HANDLE;
  return GetAttribute(function, attribute, value);
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
  if (!IsLive(function)) return CUDA_ERROR_INVALID_HANDLE;
  const CUresult result = CheckAttribute(attribute, value);
  if (result == CUDA_SUCCESS) function->max_dynamic_shared = value;
  return result;
}

CUresult cuFuncGetName(const char** name, CUfunction function) {
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!IsLive(function)) return CUDA_ERROR_INVALID_HANDLE;
  *name = function->name.c_str();
  return CUDA_SUCCESS;
}

CUresult cuFuncGetParamInfo(CUfunction function, size_t index, size_t* offset, size_t* bytes) {
  if (!IsLive(function)) return CUDA_ERROR_INVALID_HANDLE;
  return ParamInfo(function, index, offset, bytes);
}

// A module is loaded as a whole.
CUresult cuFuncLoad(CUfunction function) {
  return IsLive(function) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuFuncIsLoaded(CUfunctionLoadingState* state, CUfunction function) {
  if (state == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!IsLive(function)) return CUDA_ERROR_INVALID_HANDLE;
  *state = CU_FUNCTION_LOADING_STATE_LOADED;
  return CUDA_SUCCESS;
}
