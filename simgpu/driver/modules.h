// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <string>

#include "simgpu/driver/driver.h"

/// What modules (of one context) and libraries (of none, loaded into each context that uses them)
/// have in common.
namespace sluice::simgpu {

/// The ELF object of an image that a program handed in, or why it is none; said on stderr with the
/// name of the call.
CUresult DecodeFor(const char* call, const void* image, std::string* object);
/// The contents of an image file, or why not.
CUresult ReadImageFile(const char* file, std::string* image);

CUresult LoadModule(Context* context, const char* call, const std::string& object, CUmodule* out);
/// Waits for what was launched, then takes the module and its functions away.
CUresult UnloadModule(CUmodule module);
/// The function of that name, which is made at its first use.
CUresult FindFunction(CUmodule module, const char* name, CUfunction* out);

CUresult ParamInfo(CUfunction function, size_t index, size_t* offset, size_t* bytes);
CUresult GetAttribute(CUfunction function, CUfunction_attribute attribute, int* value);
CUresult CheckAttribute(CUfunction_attribute attribute, int value);

/// The function that `kernel` is in this context; its library is loaded there if it was not.
CUresult FunctionOf(CUkernel kernel, Context* context, CUfunction* out);
/// Launches take a kernel's handle in the place of a function's: `*handle` becomes the function of
/// `context`. Another context's function is refused.
CUresult ResolveFunction(CUfunction* handle, Context* context);

}  // namespace sluice::simgpu
