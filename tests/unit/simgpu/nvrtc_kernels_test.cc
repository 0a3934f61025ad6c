// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <gtest/gtest.h>

#include <cmath>
#include <csetjmp>
#include <csignal>
#include <cstring>
#include <numeric>

#include "tests/unit/simgpu/nvrtc_module.h"

// What kernels mean on the simulated GPU, seen from outside: the module is loaded and run here.

namespace sluice::simgpu::nvrtc {
namespace {

TEST(NvrtcKernelsTest, EveryThreadRunsOnceWithItsIndices) {
  const NvrtcModule module(R"(
    extern "C" __global__ void count(int* seen, int* dims) {
      int block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
      int thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
      seen[block * blockDim.x * blockDim.y * blockDim.z + thread] += 1;
      if (block == 0 && thread == 0) {
        dims[0] = gridDim.x; dims[1] = gridDim.y; dims[2] = gridDim.z;
        dims[3] = blockDim.x; dims[4] = blockDim.y; dims[5] = blockDim.z; dims[6] = warpSize;
      }
    })");
  std::vector<int> seen(2 * 3 * 4 * 5 * 6 * 7, 0), dims(7, 0);
  module.Run("count", {2, 3, 4}, {5, 6, 7}, seen.data(), dims.data());
  EXPECT_EQ(seen, std::vector<int>(seen.size(), 1));
  EXPECT_EQ(dims, (std::vector<int>{2, 3, 4, 5, 6, 7, 32}));
}

TEST(NvrtcKernelsTest, EntrySaysTheSizesOfItsParameters) {
  const NvrtcModule module(R"(
    struct Pair { double a; char b; };
    typedef float const* __restrict__ Floats;
    extern "C" __global__ void many(Floats p, char c, short s, Pair pair, float4 v, const int n) {}
    extern "C" __global__ void none() {})");
  const SimgpuKernel* many = module.Find("many");
  ASSERT_NE(many, nullptr);
  EXPECT_EQ(many->abi, SIMGPU_KERNEL_ABI);
  EXPECT_EQ(std::vector<uint32_t>(many->param_sizes, many->param_sizes + many->param_count),
            (std::vector<uint32_t>{8, 1, 2, 16, 16, 4}));
  EXPECT_EQ(module.Find("none")->param_count, 0u);
  module.Run("none", {1, 1, 1}, {1, 1, 1});
}

TEST(NvrtcKernelsTest, EntrySaysWhichArgumentIsTheDuration) {
  const NvrtcModule module(R"(
    extern "C" __global__ void lasts(int* seen, unsigned long long ns) { *seen = 1; }
    extern "C" __global__ void plain(int* seen) {}
    #ifdef SIMGPU_DURATION_ARGUMENT
    SIMGPU_DURATION_ARGUMENT(lasts, 1);
    #endif
    )");
  const auto* place = static_cast<const uint32_t*>(module.Variable(SIMGPU_DURATION_PREFIX "lasts"));
  ASSERT_NE(place, nullptr);
  EXPECT_EQ(*place, 1u);
  EXPECT_EQ(module.Variable(SIMGPU_DURATION_PREFIX "plain"), nullptr);
}

TEST(NvrtcKernelsTest, ArgumentsMayStandAtAnyAddress) {
  const NvrtcModule module(
      "extern \"C\" __global__ void k(float4 v, double d, float* out) { *out = v.w + (float)d; }");
  alignas(16) unsigned char room[64] = {};
  const float vector[4] = {1, 2, 3, 4};
  const double number = 0.5;
  std::memcpy(room + 1, vector, sizeof vector);
  std::memcpy(room + 33, &number, sizeof number);
  float result = 0;
  float* out = &result;
  const void* params[] = {room + 1, room + 33, &out};
  module.RunWithParams("k", {}, {}, params);
  EXPECT_EQ(result, 4.5f);
}

constexpr char kReduce[] = R"(
  __device__ float sum_of_block(float* shared, float value) {
    shared[threadIdx.x] = value;
    __syncthreads();
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
      if (threadIdx.x < half) shared[threadIdx.x] += shared[threadIdx.x + half];
      __syncthreads();
    }
    return shared[0];
  }
  extern "C" __global__ void reduce_static(const float* in, float* out) {
    __shared__ float shared[1024];
    float sum = sum_of_block(shared, in[blockIdx.x * blockDim.x + threadIdx.x]);
    if (threadIdx.x == 0) out[blockIdx.x] = sum;
  }
  extern "C" __global__ void reduce_dynamic(const float* in, float* out) {
    extern __shared__ __align__(16) float shared[];
    float sum = sum_of_block(shared, in[blockIdx.x * blockDim.x + threadIdx.x]);
    if (threadIdx.x == 0) out[blockIdx.x] = sum;
  })";

TEST(NvrtcKernelsTest, BarriersOrderSharedMemory) {
  const NvrtcModule module(kReduce);
  for (const char* name : {"reduce_static", "reduce_dynamic"}) {
    for (unsigned threads : {1u, 32u, 256u, 1024u}) {
      std::vector<float> in(3 * threads), out(3);
      std::iota(in.begin(), in.end(), 0.0f);
      module.Run(name, {3, 1, 1}, {threads, 1, 1}, in.data(), out.data());
      for (unsigned b = 0; b < 3; ++b) {
        const float first = static_cast<float>(b * threads), n = static_cast<float>(threads);
        EXPECT_EQ(out[b], first * n + n * (n - 1) / 2) << name << " " << threads;
      }
    }
  }
}

TEST(NvrtcKernelsTest, ThreadsThatReturnEarlyDoNotHoldABarrier) {
  const NvrtcModule module(R"(
    extern "C" __global__ void k(int* out) {
      __shared__ int stage;
      if (threadIdx.x >= 40) return;
      if (threadIdx.x == 39) stage = 7;
      __syncthreads();
      out[threadIdx.x] = stage;
    })");
  std::vector<int> out(64, 0);
  module.Run("k", {}, {64, 1, 1}, out.data());
  for (size_t i = 0; i < out.size(); ++i) EXPECT_EQ(out[i], i < 40 ? 7 : 0);
}

TEST(NvrtcKernelsTest, ThreadIndicesSurviveBarriers) {
  const NvrtcModule module(R"(
    extern "C" __global__ void k(uint3* out) {
      int i = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
      __syncthreads();
      out[i] = threadIdx;
    })");
  struct Index {
    unsigned x, y, z;
  };
  std::vector<Index> out(4 * 3 * 2);
  module.Run("k", {}, {4, 3, 2}, out.data());
  for (unsigned i = 0; i < out.size(); ++i) {
    EXPECT_EQ(out[i].x, i % 4);
    EXPECT_EQ(out[i].y, i / 4 % 3);
    EXPECT_EQ(out[i].z, i / 12);
  }
}

TEST(NvrtcKernelsTest, WarpsShuffleAndVoteApart) {
  const NvrtcModule module(R"(
    extern "C" __global__ void k(int* sums, unsigned* votes, int* counts) {
      int value = threadIdx.x;
      for (int delta = 16; delta > 0; delta /= 2) value += __shfl_down_sync(0xffffffffu, value, delta);
      if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = value;
      votes[threadIdx.x] = __ballot_sync(0xffffffffu, threadIdx.x % 2);
      if (threadIdx.x < 32) __syncwarp();
      counts[threadIdx.x] = __syncthreads_count(threadIdx.x < 10);
    })");
  std::vector<int> sums(2), counts(64);
  std::vector<unsigned> votes(64);
  module.Run("k", {}, {64, 1, 1}, sums.data(), votes.data(), counts.data());
  EXPECT_EQ(sums, (std::vector<int>{496, 496 + 32 * 32}));
  EXPECT_EQ(votes, std::vector<unsigned>(64, 0xaaaaaaaau));
  EXPECT_EQ(counts, std::vector<int>(64, 10));
}

sigjmp_buf after_fault;
void LeaveKernel(int) { siglongjmp(after_fault, 1); }

TEST(NvrtcKernelsTest, AFaultInsideABlockDoesNotHarmTheNextLaunch) {
  const NvrtcModule module(R"(
    extern "C" __global__ void k(int* out, int* extra) {
      __shared__ int sum;
      if (threadIdx.x == 0) sum = 0;
      __syncthreads();
      atomicAdd(&sum, 1);
      __syncthreads();
      if (threadIdx.x == 50) extra[0] = sum;
      __syncthreads();
      out[threadIdx.x] = sum;
    })");
  std::vector<int> out(64, 0);
  int extra = 0;
  struct sigaction action = {}, before = {};
  action.sa_handler = LeaveKernel;
  sigaction(SIGSEGV, &action, &before);
  if (sigsetjmp(after_fault, 1) == 0) {
    module.Run("k", {}, {64, 1, 1}, out.data(), static_cast<int*>(nullptr));
    ADD_FAILURE() << "the kernel went on behind its fault";
  }
  sigaction(SIGSEGV, &before, nullptr);
  EXPECT_EQ(out, std::vector<int>(64, 0));
  module.Run("k", {}, {64, 1, 1}, out.data(), &extra);
  EXPECT_EQ(out, std::vector<int>(64, 64));
  EXPECT_EQ(extra, 64);
}

TEST(NvrtcKernelsTest, LoweredNamesFindTemplatesAndNamespaces) {
  const NvrtcModule module(R"(
    namespace ns {
    template <class T, int N> __global__ void fill(T* x) { x[threadIdx.x] = N; }
    __global__ void plain(int* x) { *x = 5; }
    }
    extern "C" __global__ void c_name(int* x) { *x = 6; })",
                           {"ns::fill<float, 3>", "ns::fill<int, 4>", "ns::plain", "c_name"});
  float a = 0;
  int b = 0;
  module.Run(module.Lowered("ns::fill<float, 3>"), {}, {}, &a);
  module.Run(module.Lowered("ns::fill<int, 4>"), {}, {}, &b);
  EXPECT_EQ(a, 3.0f);
  EXPECT_EQ(b, 4);
  module.Run(module.Lowered("ns::plain"), {}, {}, &b);
  EXPECT_EQ(b, 5);
  EXPECT_EQ(module.Lowered("c_name"), "c_name");
}

TEST(NvrtcKernelsTest, GlobalsAreExportedAndConstantsRead) {
  const NvrtcModule module(R"(
    __constant__ float table[3] = {1.5f, 2.5f, 3.5f};
    __device__ int counter = 40;
    extern "C" __global__ void k(float* out) { *out = table[2]; atomicAdd(&counter, 1); })");
  float out = 0;
  module.Run("k", {}, {2, 1, 1}, &out);
  EXPECT_EQ(out, 3.5f);
  ASSERT_NE(module.Variable("counter"), nullptr);
  EXPECT_EQ(*static_cast<int*>(module.Variable("counter")), 42);
}

TEST(NvrtcKernelsTest, NothingIsContracted) {
  const NvrtcModule module(
      "extern \"C\" __global__ void k(const float* a, const float* b, const float* c, float* out, "
      "int n) {"
      "  int i = threadIdx.x; if (i < n) out[i] = a[i] * b[i] + c[i]; }");
  // a * b needs more than 24 bits: a fused operation would keep the tail.
  std::vector<float> a(37, 1.0f + 0x1p-23f), b(37, 1.0f - 0x1p-23f), c(37, -1.0f), out(37);
  module.Run("k", {}, {64, 1, 1}, a.data(), b.data(), c.data(), out.data(), 37);
  for (float value : out) EXPECT_EQ(value, 0.0f);
}

TEST(NvrtcKernelsTest, MathematicsAndAtomics) {
  const NvrtcModule module(R"(
    extern "C" __global__ void k(float* f, int* i) {
      f[0] = expf(1.0f); f[1] = logf(2.0f); f[2] = rsqrtf(4.0f); f[3] = fmaxf(0.0f / 0.0f, 1.0f);
      f[4] = powf(2.0f, 0.5f); f[5] = tanhf(0.5f); f[6] = max(1.0f, 2.0f); f[7] = sqrt(9.0f);
      f[8] = __ldg(f + 6); f[9] = fminf(-1.0f, 2.0f); f[10] = make_float4(1, 2, 3, 4).z;
      i[0] = min(3, -4); i[1] = __popc(255u); i[2] = __clz(1); i[3] = __float_as_int(1.0f);
      i[4] = atomicCAS(i + 5, 9, 11); i[6] = atomicMax(i + 7, 3); i[8] = abs(-6);
    })");
  std::vector<float> f(11, 0.0f);
  std::vector<int> i = {0, 0, 0, 0, 0, 9, 0, 2, 0};
  module.Run("k", {}, {}, f.data(), i.data());
  const std::vector<float> expected = {
      std::exp(1.0f), std::log(2.0f), 0.5f,  1.0f, std::sqrt(2.0f), std::tanh(0.5f), 2.0f,
      3.0f,           2.0f,           -1.0f, 3.0f};
  for (size_t k = 0; k < f.size(); ++k) EXPECT_FLOAT_EQ(f[k], expected[k]) << k;
  EXPECT_EQ(i, (std::vector<int>{-4, 8, 31, 0x3f800000, 9, 11, 2, 3, 6}));
}

TEST(NvrtcKernelsTest, MacrosMayMakeKernels) {
  const NvrtcModule module(R"(
    #define KERNEL(name, value) extern "C" __global__ void name(int* x) { *x = value; }
    #if __CUDA_ARCH__ >= 800
    KERNEL(made, 1)
    #else
    KERNEL(made, 2)
    #endif
    )",
                           {}, {"--gpu-architecture=sm_86"});
  int x = 0;
  module.Run("made", {}, {}, &x);
  EXPECT_EQ(x, 1);
}

TEST(NvrtcKernelsTest, ModulesWithTheSameNamesStayApart) {
  const std::string source =
      "__device__ int global_value = 0;"
      "extern \"C\" __global__ void k(int* out) { __shared__ int s; s += 1; global_value += 1; "
      "*out = s + global_value; }";
  const NvrtcModule first(source), second(source + "// another");
  int out = 0;
  for (int i = 1; i <= 3; ++i) {
    first.Run("k", {}, {}, &out);
    EXPECT_EQ(out, 2 * i);
  }
  second.Run("k", {}, {}, &out);
  EXPECT_EQ(out, 2);
}

}  // namespace
}  // namespace sluice::simgpu::nvrtc
