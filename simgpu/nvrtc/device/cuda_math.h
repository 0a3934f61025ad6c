// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

// CUDA's mathematical functions. The exact ones (sqrt, fma, rounding) give the bits of IEEE 754;
// the others are the host's libm, so their last bit may differ from a GPU's.

#define SIMGPU_MATH1(name)                  \
  extern "C" double name(double) noexcept;  \
  extern "C" float name##f(float) noexcept; \
  static inline float name(float x) { return name##f(x); }
#define SIMGPU_MATH2(name)                         \
  extern "C" double name(double, double) noexcept; \
  extern "C" float name##f(float, float) noexcept; \
  static inline float name(float x, float y) { return name##f(x, y); }

SIMGPU_MATH1(acos)
SIMGPU_MATH1(asin)
SIMGPU_MATH1(atan)
SIMGPU_MATH1(cbrt)
SIMGPU_MATH1(ceil)
SIMGPU_MATH1(cos)
SIMGPU_MATH1(cosh)
SIMGPU_MATH1(erf)
SIMGPU_MATH1(erfc)
SIMGPU_MATH1(exp)
SIMGPU_MATH1(exp2)
SIMGPU_MATH1(expm1)
SIMGPU_MATH1(fabs)
SIMGPU_MATH1(floor)
SIMGPU_MATH1(lgamma)
SIMGPU_MATH1(log)
SIMGPU_MATH1(log10)
SIMGPU_MATH1(log1p)
SIMGPU_MATH1(log2)
SIMGPU_MATH1(rint)
SIMGPU_MATH1(round)
SIMGPU_MATH1(sin)
SIMGPU_MATH1(sinh)
SIMGPU_MATH1(sqrt)
SIMGPU_MATH1(tan)
SIMGPU_MATH1(tanh)
SIMGPU_MATH1(tgamma)
SIMGPU_MATH1(trunc)
SIMGPU_MATH2(atan2)
SIMGPU_MATH2(copysign)
SIMGPU_MATH2(fdim)
SIMGPU_MATH2(fmod)
SIMGPU_MATH2(hypot)
SIMGPU_MATH2(pow)
#undef SIMGPU_MATH1
#undef SIMGPU_MATH2

extern "C" double fma(double, double, double) noexcept;
extern "C" float fmaf(float, float, float) noexcept;
static inline float fma(float x, float y, float z) { return fmaf(x, y, z); }

// As IEEE maxNum: the number when the other operand is not one. Written as selects, which the host
// compiler can vectorise; a call to libm it cannot.
static inline float fmaxf(float a, float b) { return (a > b || b != b) ? a : b; }
static inline float fminf(float a, float b) { return (a < b || b != b) ? a : b; }
static inline double fmax(double a, double b) { return (a > b || b != b) ? a : b; }
static inline double fmin(double a, double b) { return (a < b || b != b) ? a : b; }
static inline float fmax(float a, float b) { return fmaxf(a, b); }
static inline float fmin(float a, float b) { return fminf(a, b); }

#define SIMGPU_MIN_MAX(left, right, type)                                      \
  static inline type min(left a, right b) {                                    \
    return static_cast<type>(a) < static_cast<type>(b) ? static_cast<type>(a)  \
                                                       : static_cast<type>(b); \
  }                                                                            \
  static inline type max(left a, right b) {                                    \
    return static_cast<type>(a) > static_cast<type>(b) ? static_cast<type>(a)  \
                                                       : static_cast<type>(b); \
  }
SIMGPU_MIN_MAX(int, int, int)
SIMGPU_MIN_MAX(unsigned, unsigned, unsigned)
SIMGPU_MIN_MAX(int, unsigned, unsigned)
SIMGPU_MIN_MAX(unsigned, int, unsigned)
SIMGPU_MIN_MAX(long, long, long)
SIMGPU_MIN_MAX(unsigned long, unsigned long, unsigned long)
SIMGPU_MIN_MAX(long long, long long, long long)
SIMGPU_MIN_MAX(unsigned long long, unsigned long long, unsigned long long)
#undef SIMGPU_MIN_MAX
static inline float min(float a, float b) { return fminf(a, b); }
static inline float max(float a, float b) { return fmaxf(a, b); }
static inline double min(double a, double b) { return fmin(a, b); }
static inline double max(double a, double b) { return fmax(a, b); }
static inline double min(float a, double b) { return fmin(double(a), b); }
static inline double min(double a, float b) { return fmin(a, double(b)); }
static inline double max(float a, double b) { return fmax(double(a), b); }
static inline double max(double a, float b) { return fmax(a, double(b)); }

static inline int abs(int x) { return x < 0 ? -x : x; }
static inline long abs(long x) { return x < 0 ? -x : x; }
static inline long long abs(long long x) { return x < 0 ? -x : x; }
static inline float abs(float x) { return fabsf(x); }
static inline double abs(double x) { return fabs(x); }

static inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
static inline double rsqrt(double x) { return 1.0 / sqrt(x); }
static inline float rsqrt(float x) { return rsqrtf(x); }
static inline float exp10f(float x) { return powf(10.0f, x); }
static inline bool isnan(float x) { return x != x; }
static inline bool isnan(double x) { return x != x; }
static inline bool isinf(float x) { return __builtin_isinf(x) != 0; }
static inline bool isinf(double x) { return __builtin_isinf(x) != 0; }
static inline bool isfinite(float x) { return __builtin_isfinite(x) != 0; }
static inline bool isfinite(double x) { return __builtin_isfinite(x) != 0; }

// Intrinsics. The fast ones are as exact here as the others.
static inline float __expf(float x) { return expf(x); }
static inline float __exp10f(float x) { return exp10f(x); }
static inline float __logf(float x) { return logf(x); }
static inline float __log2f(float x) { return log2f(x); }
static inline float __powf(float x, float y) { return powf(x, y); }
static inline float __sinf(float x) { return sinf(x); }
static inline float __cosf(float x) { return cosf(x); }
static inline float __tanf(float x) { return tanf(x); }
static inline float __saturatef(float x) { return fminf(fmaxf(x, 0.0f), 1.0f); }
static inline float __fdividef(float x, float y) { return x / y; }
static inline float __fadd_rn(float x, float y) { return x + y; }
static inline float __fsub_rn(float x, float y) { return x - y; }
static inline float __fmul_rn(float x, float y) { return x * y; }
static inline float __fdiv_rn(float x, float y) { return x / y; }
static inline float __fmaf_rn(float x, float y, float z) { return fmaf(x, y, z); }
static inline float __fsqrt_rn(float x) { return sqrtf(x); }
static inline float __frcp_rn(float x) { return 1.0f / x; }
static inline float __frsqrt_rn(float x) { return rsqrtf(x); }
static inline int __mul24(int x, int y) { return x * y; }
static inline unsigned __umul24(unsigned x, unsigned y) { return x * y; }
static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz(unsigned(x)); }
static inline int __ffs(int x) { return __builtin_ffs(x); }
static inline int __float2int_rn(float x) { return int(rintf(x)); }
static inline int __float2int_rz(float x) { return int(x); }
static inline float __int2float_rn(int x) { return float(x); }
static inline int __float_as_int(float x) { return __builtin_bit_cast(int, x); }
static inline unsigned __float_as_uint(float x) { return __builtin_bit_cast(unsigned, x); }
static inline float __int_as_float(int x) { return __builtin_bit_cast(float, x); }
static inline float __uint_as_float(unsigned x) { return __builtin_bit_cast(float, x); }
