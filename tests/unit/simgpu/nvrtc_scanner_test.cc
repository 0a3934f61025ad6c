// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <gtest/gtest.h>

#include <algorithm>

#include "simgpu/nvrtc/rewrite.h"
#include "simgpu/nvrtc/scanner.h"

namespace sluice::simgpu::nvrtc {
namespace {

std::vector<std::string> Names(const Scan& scan) {
  std::vector<std::string> names;
  for (const Kernel& kernel : scan.kernels) names.push_back(kernel.qualified);
  return names;
}

using Strings = std::vector<std::string>;

TEST(NvrtcScannerTest, FindsKernelsAndTheirLinkage) {
  const Scan scan = ScanSource(R"(
    extern "C" __global__ void plain(float* a, int n) { a[n] = 1; }
    extern "C" { __global__ void in_block(int*) {} }
    __global__ void cpp() {}
    namespace a { namespace b { __global__ void nested() {} } }
    namespace c::d { extern "C" __global__ void joined() {} }
    template <class T, int N = (1 > 0)> __global__ void instance(T* t) {}
  )");
  EXPECT_EQ(scan.error, "");
  EXPECT_EQ(Names(scan),
            (Strings{"plain", "in_block", "cpp", "a::b::nested", "c::d::joined", "instance"}));
  const std::vector<bool> c_linkage = {true, true, false, false, true, false};
  for (size_t i = 0; i < c_linkage.size(); ++i) {
    EXPECT_EQ(scan.kernels[i].c_linkage, c_linkage[i]) << scan.kernels[i].name;
    EXPECT_EQ(scan.kernels[i].is_template, i == 5) << scan.kernels[i].name;
  }
}

TEST(NvrtcScannerTest, IgnoresWhatOnlyLooksLikeAKernel) {
  const Scan scan = ScanSource(R"src(
    // extern "C" __global__ void commented() {}
    /* __global__ void blocked() { */
    # 12 "file with __global__ void marker() {}"
    const char* text = "__global__ void quoted() {";
    const char* raw = R"x(__global__ void raw() { )" )x";
    const int big = 1'000'000; const char brace = '{';
    __global__ void declared(int);
    __global__ void real() {}
  )src");
  EXPECT_EQ(Names(scan), (Strings{"real"}));
  EXPECT_EQ(scan.global_markers.size(), 1u);
}

TEST(NvrtcScannerTest, PassesOverAttributesAndBounds) {
  const Scan scan = ScanSource(R"(
    extern "C" __global__ __launch_bounds__(256, 2) void first(float* x) {}
    extern "C" __global__ void __launch_bounds__(256) second(float* x) {}
    extern "C" __attribute__((aligned(16))) __global__ void third(int (*f)(int), int x[3]) {}
    static const int table[] = {1, 2, 3};
    struct S { int a; __device__ S() : a{1} {} };
    enum class E { kOne, kTwo };
    auto lambda = [](int x) { return x; };
    extern "C" __global__ void fourth() { if (true) { for (;;) {} } }
  )");
  EXPECT_EQ(Names(scan), (Strings{"first", "second", "third", "fourth"}));
}

TEST(NvrtcScannerTest, FollowsCallsToBarriers) {
  const Scan scan = ScanSource(R"(
    __device__ void leaf() { __syncthreads(); }
    template <class T> __device__ T middle(T x) { leaf(); return x; }
    __global__ void direct() { __syncthreads(); }
    __global__ void indirect() { middle<int>(1); }
    __global__ void shuffles(int* x) { x[0] = __shfl_down_sync(~0u, x[0], 1); }
    __global__ void none(float* x) { x[0] = 0; }
  )");
  ASSERT_EQ(scan.kernels.size(), 4u);
  EXPECT_TRUE(scan.kernels[0].barriers);
  EXPECT_TRUE(scan.kernels[1].barriers);
  EXPECT_TRUE(scan.kernels[2].barriers);
  EXPECT_FALSE(scan.kernels[3].barriers);
}

TEST(NvrtcScannerTest, RewritesSharedMemoryAndKeepsLines) {
  const std::string source =
      "__global__ void k() {\n"
      "  extern __shared__ __align__(16)\n"
      "  unsigned char bytes[];\n"
      "  __shared__ float tile[4];\n"
      "}\n";
  const Scan scan = ScanSource(source);
  ASSERT_EQ(scan.dynamic_shared.size(), 1u);
  EXPECT_EQ(scan.dynamic_shared[0].name, "bytes");
  const std::string result = RewriteSource(source, scan);
  EXPECT_EQ(std::count(result.begin(), result.end(), '\n'),
            std::count(source.begin(), source.end(), '\n'));
  EXPECT_EQ(result.find("__shared__"), std::string::npos);
  EXPECT_EQ(result.find("__global__"), std::string::npos);
  EXPECT_NE(result.find("static float tile[4];"), std::string::npos);
}

TEST(NvrtcScannerTest, RefusesWhatItCannotTranslate) {
  EXPECT_NE(ScanSource("__global__ void k() { extern __shared__ float a; }").error, "");
  EXPECT_NE(ScanSource("struct S { __global__ void member() {} };").error, "");
}

TEST(NvrtcScannerTest, UnbalancedTextEnds) {
  for (const char* text : {"{", "}", "__global__ void f(", "__global__ void f() {", "\"", "R\"x(",
                           "/*", "template <", "extern \"C\"", "extern __shared__", "#", "'"}) {
    EXPECT_EQ(ScanSource(text).kernels.size(),
              std::string(text).find("f() {") == std::string::npos ? 0u : 1u)
        << text;
  }
}

TEST(NvrtcRewriteTest, NamesOfExpressions) {
  EXPECT_EQ(BaseName("ns::kernel<float, 4>"), "kernel");
  EXPECT_EQ(BaseName("&kernel"), "kernel");
  EXPECT_EQ(BaseName("kernel < ns::T >"), "kernel");
  EXPECT_NE(LoweredName("k<int>"), LoweredName("k<unsigned>"));
  EXPECT_NE(LoweredName("k<1, 2>"), LoweredName("k<1,2>"));
}

}  // namespace
}  // namespace sluice::simgpu::nvrtc
