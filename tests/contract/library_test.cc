// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "tests/contract/fixture.h"

namespace sluice::contract {
namespace {

/// A library of the module of kernels.cc. A library needs no context.
class Library : public ContextTest {
 protected:
  void SetUp() override {
    ContextTest::SetUp();
    ASSERT_CU(cuLibraryLoadData(&library_, KernelImage().c_str(), nullptr, nullptr, 0, nullptr,
                                nullptr, 0));
  }
  void TearDown() override {
    if (library_ != nullptr) {
      EXPECT_CU(cuLibraryUnload(library_));
    }
    ContextTest::TearDown();
  }
  CUkernel Get(const char* name) {
    CUkernel kernel = nullptr;
    EXPECT_CU(cuLibraryGetKernel(&kernel, library_, name));
    return kernel;
  }

  CUlibrary library_ = nullptr;
};

TEST_F(Library, ItsKernelsAreLaunchedLikeFunctions) {
  CUdeviceptr memory = Alloc(64);
  uint32_t value = 0x1234;
  uint64_t count = 16;
  void* params[] = {&memory, &value, &count};
  const auto handle = reinterpret_cast<CUfunction>(Get("fill"));
  ASSERT_CU(cuLaunchKernel(handle, 1, 1, 1, 1, 1, 1, 0, nullptr, params, nullptr));
  EXPECT_EQ(Read32(memory + 60), 0x1234u);
}

TEST_F(Library, AKernelHasAFunctionInEachContext) {
  const CUkernel kernel = Get("fill");
  CUfunction first = nullptr;
  CUfunction again = nullptr;
  CUfunction second = nullptr;
  ASSERT_CU(cuKernelGetFunction(&first, kernel));
  ASSERT_CU(cuKernelGetFunction(&again, kernel));
  EXPECT_EQ(first, again);
  CUcontext other = nullptr;
  ASSERT_CU(cuCtxCreate_v2(&other, 0, 0));
  ASSERT_CU(cuKernelGetFunction(&second, kernel));
  EXPECT_NE(first, second);

  CUdeviceptr memory = Alloc(64);
  uint32_t value = 7;
  uint64_t count = 16;
  void* params[] = {&memory, &value, &count};
  EXPECT_EQ(cuLaunchKernel(first, 1, 1, 1, 1, 1, 1, 0, nullptr, params, nullptr),
            CUDA_ERROR_INVALID_HANDLE);
  ASSERT_CU(cuLaunchKernel(second, 1, 1, 1, 1, 1, 1, 0, nullptr, params, nullptr));
  EXPECT_EQ(Read32(memory), 7u);
  EXPECT_CU(cuMemFree_v2(memory));
  EXPECT_CU(cuCtxDestroy_v2(other));
}

TEST_F(Library, ListsItsKernels) {
  unsigned count = 0;
  ASSERT_CU(cuLibraryGetKernelCount(&count, library_));
  std::vector<CUkernel> kernels(count);
  ASSERT_CU(cuLibraryEnumerateKernels(kernels.data(), count, library_));
  std::vector<std::string> names;
  for (const CUkernel kernel : kernels) {
    const char* name = nullptr;
    ASSERT_CU(cuKernelGetName(&name, kernel));
    names.emplace_back(name);
    CUlibrary of = nullptr;
    ASSERT_CU(cuKernelGetLibrary(&of, kernel));
    EXPECT_EQ(of, library_);
  }
  for (const char* name : {"fill", "append", "big", "nothing"}) {
    EXPECT_EQ(std::count(names.begin(), names.end(), name), 1) << name;
  }
  CUkernel none = nullptr;
  EXPECT_EQ(cuLibraryGetKernel(&none, library_, "no_such_kernel"), CUDA_ERROR_NOT_FOUND);
}

TEST_F(Library, AKernelTellsItsParameters) {
  const CUkernel kernel = Get("fill");  // pointer, 32 bits, 64 bits
  const size_t expected[][2] = {{0, 8}, {8, 4}, {16, 8}};
  for (size_t i = 0; i < 3; ++i) {
    size_t offset = 0;
    size_t bytes = 0;
    ASSERT_CU(cuKernelGetParamInfo(kernel, i, &offset, &bytes));
    EXPECT_EQ(offset, expected[i][0]);
    EXPECT_EQ(bytes, expected[i][1]);
    ASSERT_CU(cuFuncGetParamInfo(Kernel("fill"), i, &offset, nullptr));
    EXPECT_EQ(offset, expected[i][0]);
  }
  size_t offset = 0;
  EXPECT_EQ(cuKernelGetParamInfo(kernel, 3, &offset, nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuFuncGetParamInfo(Kernel("nothing"), 0, &offset, nullptr), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Library, AnAttributeOfAKernelHoldsInEachContext) {
  const CUkernel kernel = Get("nothing");
  constexpr int kMore = 96 * 1024;
  const auto attribute = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
  const auto handle = reinterpret_cast<CUfunction>(kernel);
  EXPECT_EQ(cuLaunchKernel(handle, 1, 1, 1, 1, 1, 1, kMore, nullptr, nullptr, nullptr),
            CUDA_ERROR_INVALID_VALUE);
  ASSERT_CU(cuKernelSetAttribute(attribute, kMore, kernel, 0));
  int value = 0;
  ASSERT_CU(cuKernelGetAttribute(&value, attribute, kernel, 0));
  EXPECT_EQ(value, kMore);
  EXPECT_CU(cuLaunchKernel(handle, 1, 1, 1, 1, 1, 1, kMore, nullptr, nullptr, nullptr));
  CUcontext other = nullptr;
  ASSERT_CU(cuCtxCreate_v2(&other, 0, 0));
  EXPECT_CU(cuLaunchKernel(handle, 1, 1, 1, 1, 1, 1, kMore, nullptr, nullptr, nullptr));
  EXPECT_CU(cuCtxDestroy_v2(other));
}

TEST_F(Library, ItsModuleGoesWithIt) {
  CUmodule module = nullptr;
  ASSERT_CU(cuLibraryGetModule(&module, library_));
  CUfunction function = nullptr;
  ASSERT_CU(cuModuleGetFunction(&function, module, "nothing"));
  EXPECT_CU(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
  EXPECT_CU(cuCtxSynchronize());
  ASSERT_CU(cuLibraryUnload(library_));
  library_ = nullptr;
}

TEST_F(Library, HandlesOfOneThatIsGoneAreRefused) {
  OnlySimulated("a real driver reads what a stale handle points to");
  CUmodule module = nullptr;
  ASSERT_CU(cuLibraryGetModule(&module, library_));
  CUfunction function = nullptr;
  ASSERT_CU(cuModuleGetFunction(&function, module, "nothing"));
  EXPECT_EQ(cuModuleUnload(module), CUDA_ERROR_NOT_PERMITTED);
  const CUkernel kernel = Get("nothing");
  ASSERT_CU(cuLibraryUnload(library_));
  EXPECT_EQ(cuLibraryUnload(library_), CUDA_ERROR_INVALID_HANDLE);
  library_ = nullptr;
  const auto handle = reinterpret_cast<CUfunction>(kernel);
  EXPECT_EQ(cuLaunchKernel(handle, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr),
            CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr),
            CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(Library, MayComeFromAFile) {
  const std::string file = std::string(::testing::TempDir()) + "/library_test.image";
  std::ofstream(file) << KernelImage();
  CUlibrary library = nullptr;
  EXPECT_CU(
      cuLibraryLoadFromFile(&library, file.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0));
  CUmodule module = nullptr;
  EXPECT_CU(cuModuleLoad(&module, file.c_str()));
  remove(file.c_str());
  EXPECT_CU(cuLibraryUnload(library));
  EXPECT_CU(cuModuleUnload(module));
  EXPECT_EQ(cuModuleLoad(&module, file.c_str()), CUDA_ERROR_FILE_NOT_FOUND);
}

TEST_F(Library, AModuleListsItsFunctions) {
  unsigned count = 0;
  ASSERT_CU(cuModuleGetFunctionCount(&count, module_));
  unsigned of_library = 0;
  ASSERT_CU(cuLibraryGetKernelCount(&of_library, library_));
  EXPECT_EQ(count, of_library);
  // One kernel of kernels.cc cannot be loaded: it is of another version.
  std::vector<CUfunction> functions(count);
  EXPECT_EQ(cuModuleEnumerateFunctions(functions.data(), count, module_) == CUDA_SUCCESS,
            !OwnKernels());
  ASSERT_CU(cuModuleEnumerateFunctions(functions.data(), 1, module_));
  CUmodule of = nullptr;
  ASSERT_CU(cuFuncGetModule(&of, functions[0]));
  EXPECT_EQ(of, module_);
}

TEST_F(Library, StreamPrioritiesAreClampedToTheRange) {
  int least = 1;
  int greatest = 1;
  ASSERT_CU(cuCtxGetStreamPriorityRange(&least, &greatest));
  EXPECT_LE(greatest, least);
  CUstream stream = nullptr;
  ASSERT_CU(cuStreamCreateWithPriority(&stream, 0, greatest - 10));
  int priority = 1;
  ASSERT_CU(cuStreamGetPriority(stream, &priority));
  EXPECT_EQ(priority, greatest);
  EXPECT_CU(cuStreamDestroy_v2(stream));
}

}  // namespace
}  // namespace sluice::contract
