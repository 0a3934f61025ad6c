// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

#include <stddef.h>

/// The part of NVRTC's interface (runtime compilation of CUDA C) that the examples use and that the
/// simulated GPU implements; written from the public documentation, like common/cuda/abi.h.

extern "C" {

typedef struct _nvrtcProgram* nvrtcProgram;

typedef enum {
  NVRTC_SUCCESS = 0,
  NVRTC_ERROR_OUT_OF_MEMORY = 1,
  NVRTC_ERROR_PROGRAM_CREATION_FAILURE = 2,
  NVRTC_ERROR_INVALID_INPUT = 3,
  NVRTC_ERROR_INVALID_PROGRAM = 4,
  NVRTC_ERROR_INVALID_OPTION = 5,
  NVRTC_ERROR_COMPILATION = 6,
  NVRTC_ERROR_BUILTIN_OPERATION_FAILURE = 7,
  NVRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION = 8,
  NVRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION = 9,
  NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID = 10,
  NVRTC_ERROR_INTERNAL_ERROR = 11,
} nvrtcResult;

/// One row per function: result type, name, parameters.
#define SLUICE_NVRTC_FUNCTIONS(ROW)                                                        \
  ROW(const char*, nvrtcGetErrorString, (nvrtcResult result))                              \
  ROW(nvrtcResult, nvrtcVersion, (int* major, int* minor))                                 \
  ROW(nvrtcResult, nvrtcGetNumSupportedArchs, (int* count))                                \
  ROW(nvrtcResult, nvrtcGetSupportedArchs, (int* archs))                                   \
  ROW(nvrtcResult, nvrtcCreateProgram,                                                     \
      (nvrtcProgram * program, const char* source, const char* name, int header_count,     \
       const char* const* headers, const char* const* include_names))                      \
  ROW(nvrtcResult, nvrtcDestroyProgram, (nvrtcProgram * program))                          \
  ROW(nvrtcResult, nvrtcCompileProgram,                                                    \
      (nvrtcProgram program, int option_count, const char* const* options))                \
  ROW(nvrtcResult, nvrtcGetPTXSize, (nvrtcProgram program, size_t * bytes))                \
  ROW(nvrtcResult, nvrtcGetPTX, (nvrtcProgram program, char* text))                        \
  ROW(nvrtcResult, nvrtcGetCUBINSize, (nvrtcProgram program, size_t * bytes))              \
  ROW(nvrtcResult, nvrtcGetCUBIN, (nvrtcProgram program, char* image))                     \
  ROW(nvrtcResult, nvrtcGetProgramLogSize, (nvrtcProgram program, size_t * bytes))         \
  ROW(nvrtcResult, nvrtcGetProgramLog, (nvrtcProgram program, char* text))                 \
  ROW(nvrtcResult, nvrtcAddNameExpression, (nvrtcProgram program, const char* expression)) \
  ROW(nvrtcResult, nvrtcGetLoweredName,                                                    \
      (nvrtcProgram program, const char* expression, const char** lowered))

#define SLUICE_NVRTC_DECLARE(result, name, params) \
  result name params;                              \
  typedef result(*PFN_##name) params;
SLUICE_NVRTC_FUNCTIONS(SLUICE_NVRTC_DECLARE)
#undef SLUICE_NVRTC_DECLARE

}  // extern "C"
