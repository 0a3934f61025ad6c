// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#define _GNU_SOURCE
#include <dlfcn.h>
#include <unistd.h>

// Preloaded behind libsluice.so: wraps a function of the C library in the usual way. If RTLD_NEXT
// lost its meaning, it would find itself.
int sluice_next_is_itself(void);

pid_t getppid(void) {
  pid_t (*next)(void) = (pid_t(*)(void))dlsym(RTLD_NEXT, "getppid");
  return next == getppid ? -1 : next();
}

int sluice_next_is_itself(void) { return getppid() == -1; }

// A library of somebody else's with a function of the driver's name.
int cuMemAllocAsync(void);
int cuMemAllocAsync(void) { return 4711; }
// And with one that merely looks like the driver's.
int cuOfAnotherLibrary(void);
int cuOfAnotherLibrary(void) { return 4712; }
