// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "simgpu/nvrtc/program.h"
#include "simgpu/nvrtc/toolchain.h"

namespace sluice::simgpu::nvrtc {
namespace {

constexpr char kSource[] = "extern \"C\" __global__ void k(int* x) { x[threadIdx.x] = 1; }\n";

/// Each test has a cache of its own.
class NvrtcProgramTest : public testing::Test {
 protected:
  NvrtcProgramTest() {
    setenv("SLUICE_SIMGPU_CACHE", scratch_.path().c_str(), 1);
    unsetenv("SLUICE_SIMGPU_CXX");
  }
  ~NvrtcProgramTest() override { unsetenv("SLUICE_SIMGPU_CXX"); }

  ScratchDir scratch_;
};

bool Has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_F(NvrtcProgramTest, ErrorsNameTheLineOfTheProgram) {
  Program program("int one;\nextern \"C\" __global__ void k() {\n  undeclared = 1;\n}\n", "mine.cu",
                  {});
  EXPECT_EQ(program.Compile({}), NVRTC_ERROR_COMPILATION);
  EXPECT_TRUE(Has(program.log(), "mine.cu:3:")) << program.log();
  EXPECT_TRUE(Has(program.log(), "undeclared")) << program.log();
  EXPECT_TRUE(program.image().empty());
}

TEST_F(NvrtcProgramTest, ErrorsNameAProgramWhoseNameIsNoFileName) {
  Program program("\n#error broken\n", "dir/my program", {});
  EXPECT_EQ(program.Compile({}), NVRTC_ERROR_COMPILATION);
  EXPECT_TRUE(Has(program.log(), "dir/my program:2:")) << program.log();
}

TEST_F(NvrtcProgramTest, LinesStayRightBehindSharedMemory) {
  Program program(
      "extern \"C\" __global__ void k() {\n  extern __shared__\n    float x[];\n  x[0] = "
      "wrong;\n}\n",
      "mine.cu", {});
  EXPECT_EQ(program.Compile({}), NVRTC_ERROR_COMPILATION);
  EXPECT_TRUE(Has(program.log(), "mine.cu:4:")) << program.log();
}

TEST_F(NvrtcProgramTest, UndefinedDeviceFunctionIsAnError) {
  Program program(
      "__device__ int elsewhere(int); extern \"C\" __global__ void k(int* x) { *x = elsewhere(1); "
      "}",
      "a.cu", {});
  EXPECT_EQ(program.Compile({}), NVRTC_ERROR_COMPILATION);
  EXPECT_TRUE(Has(program.log(), "elsewhere")) << program.log();
}

TEST_F(NvrtcProgramTest, MissingCompilerSaysWhatWasLookedForAndHowToGetOne) {
  setenv("SLUICE_SIMGPU_CXX", "/nonexistent", 1);
  Program program(kSource, "a.cu", {});
  EXPECT_EQ(program.Compile({}), NVRTC_ERROR_COMPILATION);
  EXPECT_TRUE(Has(program.log(), "/nonexistent")) << program.log();
  EXPECT_TRUE(Has(program.log(), "apt-get install g++")) << program.log();
}

TEST_F(NvrtcProgramTest, NoCompilerInPath) {
  const std::string path = std::getenv("PATH");
  setenv("PATH", scratch_.path().c_str(), 1);
  Program program(kSource, "a.cu", {});
  EXPECT_EQ(program.Compile({}), NVRTC_ERROR_COMPILATION);
  setenv("PATH", path.c_str(), 1);
  EXPECT_TRUE(Has(program.log(), "c++, g++ and clang++")) << program.log();
}

TEST_F(NvrtcProgramTest, SecondCompilationComesFromTheCache) {
  Program first(kSource, "a.cu", {}), second(kSource, "a.cu", {}), other(kSource, "a.cu", {});
  ASSERT_EQ(first.Compile({"--gpu-architecture=sm_90"}), NVRTC_SUCCESS) << first.log();
  EXPECT_FALSE(first.from_cache());
  ASSERT_EQ(second.Compile({"--gpu-architecture=sm_90"}), NVRTC_SUCCESS);
  EXPECT_TRUE(second.from_cache());
  EXPECT_EQ(first.image(), second.image());
  ASSERT_EQ(other.Compile({"--gpu-architecture=sm_90", "--std=c++20"}), NVRTC_SUCCESS);
  EXPECT_FALSE(other.from_cache());
}

TEST_F(NvrtcProgramTest, AChangedHeaderIsCompiledAgain) {
  const std::string source =
      "#include \"sub/value.h\"\nextern \"C\" __global__ void k(int* x) { *x = VALUE; }";
  for (const char* text : {"#define VALUE 1", "#define VALUE 2"}) {
    Program program(source, "a.cu", {{"sub/value.h", text}});
    ASSERT_EQ(program.Compile({}), NVRTC_SUCCESS) << program.log();
    EXPECT_FALSE(program.from_cache());
  }
  Program again(source, "a.cu", {{"sub/value.h", "#define VALUE 1"}});
  ASSERT_EQ(again.Compile({}), NVRTC_SUCCESS);
  EXPECT_TRUE(again.from_cache());
}

TEST_F(NvrtcProgramTest, RelativeFoldersAreThoseOfTheProgram) {
  scratch_.Write("include/value.h", "#define VALUE 1");
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(scratch_.path());
  Program program("#include <value.h>\nextern \"C\" __global__ void k(int* x) { *x = VALUE; }",
                  "a.cu", {});
  EXPECT_EQ(program.Compile({"-Iinclude"}), NVRTC_SUCCESS) << program.log();
  std::filesystem::current_path(before);
}

TEST_F(NvrtcProgramTest, UnusableCacheIsNoError) {
  setenv("SLUICE_SIMGPU_CACHE", "/proc/nowhere", 1);
  Program program(kSource, "a.cu", {});
  EXPECT_EQ(program.Compile({}), NVRTC_SUCCESS) << program.log();
}

TEST_F(NvrtcProgramTest, HeaderOutsideTheProgramIsRefused) {
  for (const char* name : {"../escape.h", "/tmp/absolute.h", ""}) {
    Program program(kSource, "a.cu", {{name, ""}});
    EXPECT_EQ(program.Compile({}), NVRTC_ERROR_COMPILATION);
    EXPECT_TRUE(Has(program.log(), "header name")) << program.log();
  }
}

TEST_F(NvrtcProgramTest, SystemHeadersAreNotThere) {
  Program program("#include <stdio.h>\n", "a.cu", {});
  EXPECT_EQ(program.Compile({}), NVRTC_ERROR_COMPILATION);
  EXPECT_TRUE(Has(program.log(), "stdio.h")) << program.log();
}

TEST_F(NvrtcProgramTest, UnknownOptionIsRefusedWithALine) {
  Program program(kSource, "a.cu", {});
  EXPECT_EQ(program.Compile({"--unheard-of"}), NVRTC_ERROR_INVALID_OPTION);
  EXPECT_TRUE(Has(program.log(), "--unheard-of"));
}

TEST_F(NvrtcProgramTest, CubinOnlyForARealArchitecture) {
  Program real(kSource, "a.cu", {}), ptx_only(kSource, "a.cu", {});
  ASSERT_EQ(real.Compile({"--gpu-architecture=sm_80"}), NVRTC_SUCCESS);
  EXPECT_TRUE(real.has_cubin());
  ASSERT_EQ(ptx_only.Compile({"--gpu-architecture=compute_80"}), NVRTC_SUCCESS);
  EXPECT_FALSE(ptx_only.has_cubin());
}

TEST_F(NvrtcProgramTest, NameExpressionsHaveTheirTime) {
  Program program("template <class T> __global__ void k(T* x) { *x = 1; }", "a.cu", {});
  const char* name = nullptr;
  EXPECT_EQ(program.LoweredNameOf("k<int>", &name),
            NVRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION);
  ASSERT_EQ(program.AddNameExpression("k<int>"), NVRTC_SUCCESS);
  ASSERT_EQ(program.Compile({}), NVRTC_SUCCESS) << program.log();
  EXPECT_EQ(program.AddNameExpression("k<float>"),
            NVRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION);
  EXPECT_EQ(program.LoweredNameOf("k<int>", &name), NVRTC_SUCCESS);
  EXPECT_EQ(program.LoweredNameOf("k<float>", &name), NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID);
}

TEST_F(NvrtcProgramTest, NoFolderIsLeftBehind) {
  setenv("TMPDIR", scratch_.path().c_str(), 1);
  setenv("SLUICE_SIMGPU_CACHE", "/proc/nowhere", 1);
  Program good(kSource, "a.cu", {}), bad("nonsense", "a.cu", {});
  EXPECT_EQ(good.Compile({}), NVRTC_SUCCESS);
  EXPECT_NE(bad.Compile({}), NVRTC_SUCCESS);
  unsetenv("TMPDIR");
  EXPECT_TRUE(std::filesystem::is_empty(scratch_.path()));
}

}  // namespace
}  // namespace sluice::simgpu::nvrtc
