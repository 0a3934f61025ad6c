// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <algorithm>

#include "common/cuda/driver_api.h"
#include "simgpu/driver/modules.h"
#include "simgpu/module/kernel_names.h"

using namespace sluice::simgpu;  // NOLINT(google-build-using-namespace): the driver's own names

// Libraries belong to no context. They are loaded into a context at the first use of one of their
// kernels there, which the header leaves to the driver ("lazily").
namespace {

/// The library's module in `context`, loaded if it was not. The caller holds the library's mutex.
CUresult ModuleIn(CUlibrary library, Context* context, CUmodule* out) {
  const auto known = library->modules.find(context);
  if (known != library->modules.end()) {
    *out = known->second;
    return CUDA_SUCCESS;
  }
  const CUresult result = LoadModule(context, "cuLibraryLoadData", library->object, out);
  if (result != CUDA_SUCCESS) return result;
  (*out)->library = library;
  library->modules[context] = *out;
  return CUDA_SUCCESS;
}

CUresult Load(const char* call, CUlibrary* library, const void* code, CUlibraryOption* options,
              void** values, unsigned count) {
  Driver* driver = Driver::Get();
  if (driver == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  if (library == nullptr || code == nullptr || (count > 0 && options == nullptr)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  for (unsigned i = 0; i < count; ++i) {
    // That the image outlives the library changes nothing: it is copied.
    if (options[i] != CU_LIBRARY_BINARY_IS_PRESERVED) return NotSupported("this library option");
  }
  static_cast<void>(values);
  std::string object;
  const CUresult decoded = DecodeFor(call, code, &object);
  if (decoded != CUDA_SUCCESS) return decoded;
  CUlibrary loaded = driver->libraries.New();
  loaded->modules.clear();
  loaded->kernels.clear();
  for (const std::string& name : KernelNames(object)) {
    CUkernel kernel = driver->kernels.New();
    kernel->library = loaded;
    kernel->name = name;
    kernel->max_dynamic_shared = kDefaultDynamicShared;
    loaded->kernels.push_back(kernel);
  }
  loaded->object = std::move(object);
  *library = loaded;
  return CUDA_SUCCESS;
}

CUresult CheckKernel(CUkernel kernel, CUdevice dev) {
  if (!IsLive(kernel)) return CUDA_ERROR_INVALID_HANDLE;
  Device* device = nullptr;
  return CheckDevice(dev, &device);
}

/// In the current context.
CUresult CurrentFunctionOf(CUkernel kernel, CUfunction* out) {
  if (!IsLive(kernel)) return CUDA_ERROR_INVALID_HANDLE;
  Context* context = nullptr;
  const CUresult current = CurrentContext(&context);
  return current == CUDA_SUCCESS ? FunctionOf(kernel, context, out) : current;
}

}  // namespace

namespace sluice::simgpu {

CUresult FunctionOf(CUkernel kernel, Context* context, CUfunction* out) {
  CUlibrary library = kernel->library;
  const std::lock_guard lock(library->mutex);
  CUmodule module = nullptr;
  CUresult result = ModuleIn(library, context, &module);
  if (result == CUDA_SUCCESS) result = FindFunction(module, kernel->name.c_str(), out);
  if (result != CUDA_SUCCESS) return result;
  (*out)->max_dynamic_shared = std::max((*out)->max_dynamic_shared, kernel->max_dynamic_shared);
  return CUDA_SUCCESS;
}

CUresult ResolveFunction(CUfunction* handle, Context* context) {
  if (IsLive(*handle)) {
    return (*handle)->context == context ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
  }
  // Every object of the driver begins with its magic.
  const auto kernel = reinterpret_cast<CUkernel>(*handle);
  return IsLive(kernel) ? FunctionOf(kernel, context, handle) : CUDA_ERROR_INVALID_HANDLE;
}

}  // namespace sluice::simgpu

// No option of the just-in-time compiler changes what a compiled host object does.
CUresult cuLibraryLoadData(CUlibrary* library, const void* code, CUjit_option*, void**, unsigned,
                           CUlibraryOption* options, void** values, unsigned count) {
  return Load("cuLibraryLoadData", library, code, options, values, count);
}

CUresult cuLibraryLoadFromFile(CUlibrary* library, const char* file, CUjit_option*, void**,
                               unsigned, CUlibraryOption* options, void** values, unsigned count) {
  if (library == nullptr || file == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::string image;
  const CUresult read = ReadImageFile(file, &image);
  if (read != CUDA_SUCCESS) return read;
  return Load("cuLibraryLoadFromFile", library, image.c_str(), options, values, count);
}

CUresult cuLibraryUnload(CUlibrary library) {
  Driver* driver = Driver::Get();
  if (driver == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  if (!IsLive(library)) return CUDA_ERROR_INVALID_HANDLE;
  const std::lock_guard lock(library->mutex);
  CUresult result = CUDA_SUCCESS;
  for (const auto& [context, module] : library->modules) {
    const CUresult unloaded = UnloadModule(module);
    if (unloaded != CUDA_SUCCESS) result = unloaded;
  }
  for (const CUkernel kernel : library->kernels) driver->kernels.Delete(kernel);
  library->modules.clear();
  library->kernels.clear();
  driver->libraries.Delete(library);
  return result;
}

CUresult cuLibraryGetKernel(CUkernel* kernel, CUlibrary library, const char* name) {
  if (kernel == nullptr || name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!IsLive(library)) return CUDA_ERROR_INVALID_HANDLE;
  for (const CUkernel known : library->kernels) {
    if (known->name != name) continue;
    *kernel = known;
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_NOT_FOUND;
}

CUresult cuLibraryGetKernelCount(unsigned* count, CUlibrary library) {
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!IsLive(library)) return CUDA_ERROR_INVALID_HANDLE;
  *count = static_cast<unsigned>(library->kernels.size());
  return CUDA_SUCCESS;
}

CUresult cuLibraryEnumerateKernels(CUkernel* kernels, unsigned count, CUlibrary library) {
  if (kernels == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
  if (!IsLive(library)) return CUDA_ERROR_INVALID_HANDLE;
  std::copy_n(library->kernels.begin(), std::min<size_t>(count, library->kernels.size()), kernels);
  return CUDA_SUCCESS;
}

CUresult cuLibraryGetModule(CUmodule* module, CUlibrary library) {
  if (module == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!IsLive(library)) return CUDA_ERROR_INVALID_HANDLE;
  Context* context = nullptr;
  const CUresult current = CurrentContext(&context);
  if (current != CUDA_SUCCESS) return current;
  const std::lock_guard lock(library->mutex);
  return ModuleIn(library, context, module);
}

CUresult cuKernelGetFunction(CUfunction* function, CUkernel kernel) {
  return function == nullptr ? CUDA_ERROR_INVALID_VALUE : CurrentFunctionOf(kernel, function);
}

CUresult cuKernelGetLibrary(CUlibrary* library, CUkernel kernel) {
  if (library == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!IsLive(kernel)) return CUDA_ERROR_INVALID_HANDLE;
  *library = kernel->library;
  return CUDA_SUCCESS;
}

CUresult cuKernelGetName(const char** name, CUkernel kernel) {
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!IsLive(kernel)) return CUDA_ERROR_INVALID_HANDLE;
  *name = kernel->name.c_str();
  return CUDA_SUCCESS;
}

CUresult cuKernelGetParamInfo(CUkernel kernel, size_t index, size_t* offset, size_t* bytes) {
  CUfunction function = nullptr;
  const CUresult result = CurrentFunctionOf(kernel, &function);
  return result == CUDA_SUCCESS ? ParamInfo(function, index, offset, bytes) : result;
}

CUresult cuKernelGetAttribute(int* value, CUfunction_attribute attribute, CUkernel kernel,
                              CUdevice device) {
  CUresult result = CheckKernel(kernel, device);
  if (result != CUDA_SUCCESS) return result;
  CUfunction function = nullptr;
  result = CurrentFunctionOf(kernel, &function);
  return result == CUDA_SUCCESS ? GetAttribute(function, attribute, value) : result;
}

// "Sets the attribute for all contexts on the device", those that load the library later too.
CUresult cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel kernel,
                              CUdevice device) {
  CUresult result = CheckKernel(kernel, device);
  if (result == CUDA_SUCCESS) result = CheckAttribute(attribute, value);
  if (result != CUDA_SUCCESS) return result;
  const std::lock_guard lock(kernel->library->mutex);
  kernel->max_dynamic_shared = value;
  for (const auto& [context, module] : kernel->library->modules) {
    CUfunction function = nullptr;
    if (FindFunction(module, kernel->name.c_str(), &function) == CUDA_SUCCESS) {
      function->max_dynamic_shared = value;
    }
  }
  return CUDA_SUCCESS;
}
