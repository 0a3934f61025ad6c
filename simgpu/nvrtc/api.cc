// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <cstring>
#include <iterator>
#include <memory>
#include <mutex>
#include <new>
#include <set>

#include "common/cuda/nvrtc_api.h"
#include "simgpu/nvrtc/program.h"

// The exported functions: they check arguments and hand on. Nothing may throw into the caller.

using sluice::simgpu::nvrtc::kSupportedArchs;
using sluice::simgpu::nvrtc::Program;

struct _nvrtcProgram {
  Program program;
};

namespace {

std::mutex live_mutex;
std::set<nvrtcProgram>& Live() {
  // Never destroyed: a program may still call in its own static destructors.
  static auto* live = new std::set<nvrtcProgram>;
  return *live;
}

bool IsLive(nvrtcProgram program) {
  const std::lock_guard lock(live_mutex);
  return Live().contains(program);
}

template <class F>
nvrtcResult Guard(F&& body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return NVRTC_ERROR_OUT_OF_MEMORY;
  } catch (...) {
    return NVRTC_ERROR_INTERNAL_ERROR;
  }
}

template <class F>
nvrtcResult WithProgram(nvrtcProgram program, F&& body) {
  return Guard(
      [&] { return IsLive(program) ? body(program->program) : NVRTC_ERROR_INVALID_PROGRAM; });
}

nvrtcResult SizeOf(const std::string& text, size_t* bytes) {
  if (bytes == nullptr) return NVRTC_ERROR_INVALID_INPUT;
  *bytes = text.size() + 1;
  return NVRTC_SUCCESS;
}

nvrtcResult CopyOut(const std::string& text, char* to) {
  if (to == nullptr) return NVRTC_ERROR_INVALID_INPUT;
  std::memcpy(to, text.c_str(), text.size() + 1);
  return NVRTC_SUCCESS;
}

}  // namespace

extern "C" {

const char* nvrtcGetErrorString(nvrtcResult result) {
  switch (result) {
    case NVRTC_SUCCESS:
      return "NVRTC_SUCCESS";
    case NVRTC_ERROR_OUT_OF_MEMORY:
      return "NVRTC_ERROR_OUT_OF_MEMORY";
    case NVRTC_ERROR_PROGRAM_CREATION_FAILURE:
      return "NVRTC_ERROR_PROGRAM_CREATION_FAILURE";
    case NVRTC_ERROR_INVALID_INPUT:
      return "NVRTC_ERROR_INVALID_INPUT";
    case NVRTC_ERROR_INVALID_PROGRAM:
      return "NVRTC_ERROR_INVALID_PROGRAM";
    case NVRTC_ERROR_INVALID_OPTION:
      return "NVRTC_ERROR_INVALID_OPTION";
    case NVRTC_ERROR_COMPILATION:
      return "NVRTC_ERROR_COMPILATION";
    case NVRTC_ERROR_BUILTIN_OPERATION_FAILURE:
      return "NVRTC_ERROR_BUILTIN_OPERATION_FAILURE";
    case NVRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION:
      return "NVRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION";
    case NVRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION:
      return "NVRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION";
    case NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID:
      return "NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID";
    case NVRTC_ERROR_INTERNAL_ERROR:
      return "NVRTC_ERROR_INTERNAL_ERROR";
  }
  return "NVRTC_ERROR unknown";
}

nvrtcResult nvrtcVersion(int* major, int* minor) {
  if (major == nullptr || minor == nullptr) return NVRTC_ERROR_INVALID_INPUT;
  *major = 12;
  *minor = 0;
  return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetNumSupportedArchs(int* count) {
  if (count == nullptr) return NVRTC_ERROR_INVALID_INPUT;
  *count = static_cast<int>(std::size(kSupportedArchs));
  return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetSupportedArchs(int* archs) {
  if (archs == nullptr) return NVRTC_ERROR_INVALID_INPUT;
  std::memcpy(archs, kSupportedArchs, sizeof kSupportedArchs);
  return NVRTC_SUCCESS;
}

nvrtcResult nvrtcCreateProgram(nvrtcProgram* program, const char* source, const char* name,
                               int header_count, const char* const* headers,
                               const char* const* include_names) {
  if (program == nullptr || source == nullptr || header_count < 0 ||
      (header_count > 0 && (headers == nullptr || include_names == nullptr))) {
    return NVRTC_ERROR_INVALID_INPUT;
  }
  return Guard([&] {
    std::vector<Program::Header> list;
    for (int i = 0; i < header_count; ++i) {
      if (headers[i] == nullptr || include_names[i] == nullptr) return NVRTC_ERROR_INVALID_INPUT;
      list.emplace_back(include_names[i], headers[i]);
    }
    auto created = std::make_unique<_nvrtcProgram>(
        _nvrtcProgram{Program(source, name != nullptr ? name : "", std::move(list))});
    const std::lock_guard lock(live_mutex);
    Live().insert(created.get());
    *program = created.release();
    return NVRTC_SUCCESS;
  });
}

nvrtcResult nvrtcDestroyProgram(nvrtcProgram* program) {
  if (program == nullptr) return NVRTC_ERROR_INVALID_PROGRAM;
  {
    const std::lock_guard lock(live_mutex);
    if (Live().erase(*program) == 0) return NVRTC_ERROR_INVALID_PROGRAM;
  }
  delete *program;
  *program = nullptr;
  return NVRTC_SUCCESS;
}

nvrtcResult nvrtcCompileProgram(nvrtcProgram program, int option_count,
                                const char* const* options) {
  if (option_count < 0 || (option_count > 0 && options == nullptr))
    return NVRTC_ERROR_INVALID_INPUT;
  return WithProgram(program, [&](Program& p) {
    return p.Compile(std::vector<std::string>(options, options + option_count));
  });
}

nvrtcResult nvrtcGetPTXSize(nvrtcProgram program, size_t* bytes) {
  return WithProgram(program, [&](Program& p) {
    return p.image().empty() ? NVRTC_ERROR_INVALID_PROGRAM : SizeOf(p.image(), bytes);
  });
}

nvrtcResult nvrtcGetPTX(nvrtcProgram program, char* text) {
  return WithProgram(program, [&](Program& p) {
    return p.image().empty() ? NVRTC_ERROR_INVALID_PROGRAM : CopyOut(p.image(), text);
  });
}

nvrtcResult nvrtcGetCUBINSize(nvrtcProgram program, size_t* bytes) {
  return WithProgram(program, [&](Program& p) {
    if (p.has_cubin()) return SizeOf(p.image(), bytes);
    if (bytes == nullptr || p.image().empty()) return NVRTC_ERROR_INVALID_PROGRAM;
    *bytes = 0;  // a virtual architecture has none
    return NVRTC_SUCCESS;
  });
}

nvrtcResult nvrtcGetCUBIN(nvrtcProgram program, char* image) {
  return WithProgram(program, [&](Program& p) {
    return p.has_cubin() ? CopyOut(p.image(), image) : NVRTC_ERROR_INVALID_PROGRAM;
  });
}

nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram program, size_t* bytes) {
  return WithProgram(program, [&](Program& p) { return SizeOf(p.log(), bytes); });
}

nvrtcResult nvrtcGetProgramLog(nvrtcProgram program, char* text) {
  return WithProgram(program, [&](Program& p) { return CopyOut(p.log(), text); });
}

nvrtcResult nvrtcAddNameExpression(nvrtcProgram program, const char* expression) {
  if (expression == nullptr || *expression == '\0') return NVRTC_ERROR_INVALID_INPUT;
  return WithProgram(program, [&](Program& p) { return p.AddNameExpression(expression); });
}

nvrtcResult nvrtcGetLoweredName(nvrtcProgram program, const char* expression,
                                const char** lowered) {
  if (expression == nullptr || lowered == nullptr) return NVRTC_ERROR_INVALID_INPUT;
  return WithProgram(program, [&](Program& p) { return p.LoweredNameOf(expression, lowered); });
}

}  // extern "C"
