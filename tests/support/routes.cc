// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Sluice authors
#include <cstdio>
#include <string>

#include "tests/support/driver.h"

#ifdef SLUICE_TEST_LINKED
#define SLUICE_ENTRY(name) &::name
#endif

/// Finds the driver by one of the routes that programs use and asks for memory in both ways.
///   routes dlsym|proc1|proc2 BYTES     (a build with SLUICE_TEST_LINKED: routes_linked linked
///   BYTES)
/// Prints "sync=RESULT", "async=RESULT" and what cuMemGetInfo calls the total.
namespace sluice::testing {
namespace {

DriverTable Table(const std::string& route) {
#ifdef SLUICE_TEST_LINKED
  if (route != "linked") throw std::runtime_error("route: '" + route + "'; allowed: linked");
  DriverTable table;
  table.cuInit = SLUICE_ENTRY(cuInit);
  table.cuDeviceGet = SLUICE_ENTRY(cuDeviceGet);
  table.cuDevicePrimaryCtxRetain = SLUICE_ENTRY(cuDevicePrimaryCtxRetain);
  table.cuCtxSetCurrent = SLUICE_ENTRY(cuCtxSetCurrent);
  table.cuMemAlloc_v2 = SLUICE_ENTRY(cuMemAlloc_v2);
  table.cuMemAllocAsync = SLUICE_ENTRY(cuMemAllocAsync);
  table.cuMemGetInfo_v2 = SLUICE_ENTRY(cuMemGetInfo_v2);
  return table;
#else
  if (route == "dlsym") return Driver(LookupRoute::kDlsym).table();
  if (route == "proc1") return Driver(LookupRoute::kProcAddressV1).table();
  if (route == "proc2") return Driver(LookupRoute::kProcAddressV2).table();
  throw std::runtime_error("route: '" + route + "'; allowed: dlsym, proc1, proc2");
#endif
}

int Main(const std::string& route, size_t bytes) {
  const DriverTable driver = Table(route);
  CUdevice device = 0;
  CUcontext context = nullptr;
  if (driver.cuInit(0) != CUDA_SUCCESS || driver.cuDeviceGet(&device, 0) != CUDA_SUCCESS ||
      driver.cuDevicePrimaryCtxRetain(&context, device) != CUDA_SUCCESS ||
      driver.cuCtxSetCurrent(context) != CUDA_SUCCESS) {
    std::fprintf(stderr, "no context\n");
    return 3;
  }
  CUdeviceptr address = 0;
  std::printf("sync=%s\n", ResultName(driver.cuMemAlloc_v2(&address, bytes)).c_str());
  std::printf("async=%s\n", ResultName(driver.cuMemAllocAsync(&address, bytes, nullptr)).c_str());
  size_t free_bytes = 0;
  size_t total_bytes = 0;
  driver.cuMemGetInfo_v2(&free_bytes, &total_bytes);
  std::printf("total=%zu\n", total_bytes);
  return 0;
}

}  // namespace
}  // namespace sluice::testing

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: routes ROUTE BYTES\n");
    return 2;
  }
  try {
    return sluice::testing::Main(argv[1], std::stoull(argv[2]));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "routes: %s\n", error.what());
    return 2;
  }
}
