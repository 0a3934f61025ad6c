// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
//
// What a process costs before it has allocated anything.
#include <dlfcn.h>

#include "tests/contract/fixture.h"
#include "tests/contract/lent_memory.h"

namespace sluice::contract {
namespace {

/// cublasCreate_v2 of whatever version is installed; false when there is none.
bool CreateBlas() {
  using Create = int (*)(void**);
  for (const char* name : {"libcublas.so.13", "libcublas.so.12", "libcublas.so.11"}) {
    void* const library = dlopen(name, RTLD_NOW);
    if (library == nullptr) continue;
    const auto create = reinterpret_cast<Create>(dlsym(library, "cublasCreate_v2"));
    void* handle = nullptr;
    return create != nullptr && create(&handle) == 0;
  }
  return false;
}

/// Goes one step further for each number that it is sent.
int CostMore() {
  CUmodule module = nullptr;
  CUfunction nothing = nullptr;
  CUcontext second = nullptr;
  WriteToTest(cuInit(0));
  ReadFromTest();
  WriteToTest(StartContext() ? 0 : 1);
  ReadFromTest();
  bool good =
      cuModuleLoadData(&module, KernelImage().c_str()) == CUDA_SUCCESS &&
      cuModuleGetFunction(&nothing, module, "nothing") == CUDA_SUCCESS &&
      cuLaunchKernel(nothing, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr) == CUDA_SUCCESS &&
      cuCtxSynchronize() == CUDA_SUCCESS;
  WriteToTest(good ? 0 : 1);
  ReadFromTest();
  WriteToTest(CreateBlas() ? 0 : 1);
  ReadFromTest();
  WriteToTest(cuCtxCreate_v2(&second, 0, 0));
  ReadFromTest();
  return 0;
}
const bool kCostMore = AddRole("cost_more", CostMore);

class ContextBytes : public ContextTest {};

TEST_F(ContextBytes, OfEachStepOfAProcess) {
  const size_t before = FreeBytes();
  OtherProcess other("cost_more");
  size_t last = before;
  const auto step = [&](const std::string& what, bool must) {
    const bool good = other.Read() == 0;
    if (must) {
      EXPECT_TRUE(good) << what;
    }
    const size_t now = FreeBytes();
    if (good) Measure("bytes." + what, static_cast<double>(last) - static_cast<double>(now));
    last = now;
    other.Write(0);
  };
  step("cuInit", true);
  EXPECT_GE(last + Slack(), before) << "no context, no memory";
  step("primary_context", true);
  EXPECT_LT(last, before);
  step("first_kernel", true);
  step("cublasCreate", false);
  step("second_context", true);
  EXPECT_EQ(other.Join(), 0);
  EXPECT_TRUE(Eventually([&] { return FreeBytes() + Slack() >= before; }))
      << "all of it comes back";
}

}  // namespace
}  // namespace sluice::contract
