// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors

// A library with everything wrong that the check of libsluice.so must find: an export that is no
// hook, missing hooks, a symbol newer than the floor, and a library it must not need.
#include <math.h>
#include <sys/stat.h>

double cuNotAHook(double x);

double cuNotAHook(double x) {
  struct stat info;
  return fstat(0, &info) == 0 ? pow(x, x) : 0.0;  // fstat: GLIBC_2.33
}
