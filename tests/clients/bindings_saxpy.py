#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""saxpy with cuda-bindings, that is with the driver and NVRTC as they are: compiled, launched and checked.

Prints one line per round; each round allocates, computes and frees. Knows nothing of Sluice.
"""

import argparse
import ctypes
import hashlib
import struct

from cuda.bindings import driver, nvrtc

SOURCE = b"""
extern "C" __global__ void saxpy(float a, const float* x, float* y, unsigned long long n) {
  unsigned long long i = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}
"""


def check(answer):
    error, *values = answer
    if error.value != 0:
        raise RuntimeError(f"{error!r}")
    return values[0] if len(values) == 1 else values


def compile_kernel(major, minor):
    program = check(nvrtc.nvrtcCreateProgram(SOURCE, b"saxpy.cu", 0, [], []))
    options = [b"--fmad=false", f"--gpu-architecture=compute_{major}{minor}".encode()]
    check(nvrtc.nvrtcCompileProgram(program, len(options), options))
    ptx = b" " * check(nvrtc.nvrtcGetPTXSize(program))
    check(nvrtc.nvrtcGetPTX(program, ptx))
    check(nvrtc.nvrtcDestroyProgram(program))
    return ptx


def expected(a, x, y):
    to_float = lambda value: struct.unpack("f", struct.pack("f", value))[0]
    return to_float(to_float(a * x) + y)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--elements", type=int, default=1 << 18)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    bytes_each = 4 * args.elements

    check(driver.cuInit(0))
    device = check(driver.cuDeviceGet(0))
    attribute = driver.CUdevice_attribute
    major = check(driver.cuDeviceGetAttribute(attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device))
    minor = check(driver.cuDeviceGetAttribute(attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device))
    context = check(driver.cuDevicePrimaryCtxRetain(device))
    check(driver.cuCtxSetCurrent(context))
    module = check(driver.cuModuleLoadData(compile_kernel(major, minor)))
    kernel = check(driver.cuModuleGetFunction(module, b"saxpy"))
    stream = check(driver.cuStreamCreate(0))

    x = (ctypes.c_float * args.elements)(*((i % 1000) / 8 for i in range(args.elements)))
    y = (ctypes.c_float * args.elements)(*((i % 77) / 3 for i in range(args.elements)))
    out = (ctypes.c_float * args.elements)()
    for number in range(args.rounds):
        a = 1.5 + number / 7
        dx, dy = check(driver.cuMemAlloc(bytes_each)), check(driver.cuMemAlloc(bytes_each))
        check(driver.cuMemcpyHtoDAsync(dx, ctypes.addressof(x), bytes_each, stream))
        check(driver.cuMemcpyHtoDAsync(dy, ctypes.addressof(y), bytes_each, stream))
        parameters = ((a, dx, dy, args.elements), (ctypes.c_float, None, None, ctypes.c_ulonglong))
        check(driver.cuLaunchKernel(kernel, (args.elements + 255) // 256, 1, 1, 256, 1, 1, 0, stream, parameters, 0))
        check(driver.cuMemcpyDtoHAsync(ctypes.addressof(out), dy, bytes_each, stream))
        check(driver.cuStreamSynchronize(stream))
        check(driver.cuMemFree(dx))
        check(driver.cuMemFree(dy))
        a = ctypes.c_float(a).value
        for i in (0, 1, args.elements // 2, args.elements - 1):
            if out[i] != expected(a, x[i], y[i]):
                raise SystemExit(f"round {number}: element {i} is {out[i]}, not {expected(a, x[i], y[i])}")
        print("round", number, hashlib.sha256(bytes(out)).hexdigest(), flush=True)

    check(driver.cuStreamDestroy(stream))
    check(driver.cuModuleUnload(module))
    check(driver.cuDevicePrimaryCtxRelease(device))


if __name__ == "__main__":
    main()
