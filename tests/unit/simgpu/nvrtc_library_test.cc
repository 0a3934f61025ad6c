// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "common/cuda/nvrtc_api.h"
#include "simgpu/module/kernel_abi.h"

// The built library through its exported functions, as a program loads it.

namespace {

struct Library {
#define MEMBER(result, name, params) PFN_##name name = nullptr;
  SLUICE_NVRTC_FUNCTIONS(MEMBER)
#undef MEMBER

  Library() {
    void* handle = dlopen(NVRTC_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    EXPECT_NE(handle, nullptr) << dlerror();
    if (handle == nullptr) return;
#define FIND(result, function, params) \
  function = reinterpret_cast<PFN_##function>(dlsym(handle, #function));
    SLUICE_NVRTC_FUNCTIONS(FIND)
#undef FIND
  }
};

TEST(NvrtcLibraryTest, CompilesThroughTheExportedFunctions) {
  const Library lib;
  ASSERT_NE(lib.nvrtcCreateProgram, nullptr);
  int major = 0, minor = 0;
  ASSERT_EQ(lib.nvrtcVersion(&major, &minor), NVRTC_SUCCESS);
  EXPECT_EQ(major, 12);
  nvrtcProgram program = nullptr;
  const char* header = "#define VALUE 3";
  const char* header_name = "value.h";
  ASSERT_EQ(
      lib.nvrtcCreateProgram(
          &program, "#include \"value.h\"\nextern \"C\" __global__ void k(int* x) { *x = VALUE; }",
          "a.cu", 1, &header, &header_name),
      NVRTC_SUCCESS);
  const char* options[] = {"--gpu-architecture=sm_90"};
  ASSERT_EQ(lib.nvrtcCompileProgram(program, 1, options), NVRTC_SUCCESS);
  size_t bytes = 0;
  ASSERT_EQ(lib.nvrtcGetPTXSize(program, &bytes), NVRTC_SUCCESS);
  std::string image(bytes, 'x');
  ASSERT_EQ(lib.nvrtcGetPTX(program, image.data()), NVRTC_SUCCESS);
  EXPECT_EQ(image.back(), '\0');
  EXPECT_EQ(std::strlen(image.c_str()) + 1, bytes);
  EXPECT_TRUE(image.starts_with(SIMGPU_MODULE_MAGIC));
  size_t log_bytes = 0;
  ASSERT_EQ(lib.nvrtcGetProgramLogSize(program, &log_bytes), NVRTC_SUCCESS);
  EXPECT_EQ(log_bytes, 1u);
  EXPECT_EQ(lib.nvrtcDestroyProgram(&program), NVRTC_SUCCESS);
  EXPECT_EQ(program, nullptr);
}

TEST(NvrtcLibraryTest, RefusesBadArguments) {
  const Library lib;
  ASSERT_NE(lib.nvrtcCreateProgram, nullptr);
  nvrtcProgram program = nullptr;
  EXPECT_EQ(lib.nvrtcCreateProgram(&program, nullptr, nullptr, 0, nullptr, nullptr),
            NVRTC_ERROR_INVALID_INPUT);
  EXPECT_EQ(lib.nvrtcCreateProgram(&program, "", nullptr, 1, nullptr, nullptr),
            NVRTC_ERROR_INVALID_INPUT);
  int not_a_program = 0;
  auto stranger = reinterpret_cast<nvrtcProgram>(&not_a_program);
  EXPECT_EQ(lib.nvrtcCompileProgram(stranger, 0, nullptr), NVRTC_ERROR_INVALID_PROGRAM);
  EXPECT_EQ(lib.nvrtcDestroyProgram(&stranger), NVRTC_ERROR_INVALID_PROGRAM);
  ASSERT_EQ(lib.nvrtcCreateProgram(&program, "", nullptr, 0, nullptr, nullptr), NVRTC_SUCCESS);
  size_t bytes = 0;
  EXPECT_EQ(lib.nvrtcGetPTXSize(program, &bytes), NVRTC_ERROR_INVALID_PROGRAM);  // not compiled yet
  EXPECT_EQ(lib.nvrtcDestroyProgram(&program), NVRTC_SUCCESS);
  EXPECT_STREQ(lib.nvrtcGetErrorString(NVRTC_ERROR_INVALID_OPTION), "NVRTC_ERROR_INVALID_OPTION");
}

}  // namespace
