// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#pragma once

// CUDA's small vector types and their make_ functions, with CUDA's sizes and alignments.

#define SIMGPU_VECTORS(type, name, align2, align4)                                   \
  struct name##1 {                                                                   \
    type x;                                                                          \
  };                                                                                 \
  struct __align__(align2) name##2 {                                                 \
    type x, y;                                                                       \
  };                                                                                 \
  struct name##3 {                                                                   \
    type x, y, z;                                                                    \
  };                                                                                 \
  struct __align__(align4) name##4 {                                                 \
    type x, y, z, w;                                                                 \
  };                                                                                 \
  static inline name##1 make_##name##1(type x) { return {x}; }                       \
  static inline name##2 make_##name##2(type x, type y) { return {x, y}; }            \
  static inline name##3 make_##name##3(type x, type y, type z) { return {x, y, z}; } \
  static inline name##4 make_##name##4(type x, type y, type z, type w) { return {x, y, z, w}; }

SIMGPU_VECTORS(signed char, char, 2, 4)
SIMGPU_VECTORS(unsigned char, uchar, 2, 4)
SIMGPU_VECTORS(short, short, 4, 8)
SIMGPU_VECTORS(unsigned short, ushort, 4, 8)
SIMGPU_VECTORS(int, int, 8, 16)
SIMGPU_VECTORS(unsigned, uint, 8, 16)
SIMGPU_VECTORS(long, long, 16, 16)
SIMGPU_VECTORS(unsigned long, ulong, 16, 16)
SIMGPU_VECTORS(long long, longlong, 16, 16)
SIMGPU_VECTORS(unsigned long long, ulonglong, 16, 16)
SIMGPU_VECTORS(float, float, 8, 16)
SIMGPU_VECTORS(double, double, 16, 16)
#undef SIMGPU_VECTORS
