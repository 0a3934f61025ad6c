#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""saxpy with cuda-core: a template instance, a stream with a priority, stream-ordered memory.

Prints one line per round; each round allocates, computes and frees. Knows nothing of Sluice.
"""

import argparse
import ctypes
import hashlib

from cuda.core import Device, LaunchConfig, Program, ProgramOptions, StreamOptions, launch

SOURCE = """
template <typename T>
__global__ void saxpy(T a, const T* x, T* y, size_t n) {
  const size_t step = (size_t)gridDim.x * blockDim.x;
  for (size_t i = threadIdx.x + (size_t)blockIdx.x * blockDim.x; i < n; i += step) y[i] = a * x[i] + y[i];
}
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--elements", type=int, default=1 << 18)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    size = 4 * args.elements

    device = Device()
    device.set_current()
    stream = device.create_stream(options=StreamOptions(priority=-1))
    program = Program(SOURCE, code_type="c++", options=ProgramOptions(std="c++17", arch=f"sm_{device.arch}"))
    module = program.compile("cubin", name_expressions=("saxpy<float>",))
    kernel = module.get_kernel("saxpy<float>")
    if kernel.num_arguments != 4:
        raise SystemExit(f"the kernel has {kernel.num_arguments} parameters, not 4")
    offsets = [info.offset for info in kernel.arguments_info]
    if offsets != [0, 8, 16, 24]:
        raise SystemExit(f"the parameters are at {offsets}")

    x = (ctypes.c_float * args.elements)(*((i % 1000) / 8 for i in range(args.elements)))
    y = (ctypes.c_float * args.elements)(*((i % 64) / 4 for i in range(args.elements)))
    out = (ctypes.c_float * args.elements)()
    config = LaunchConfig(grid=64, block=256)
    from cuda.bindings import driver

    for number in range(args.rounds):
        a = 1.5 + number  # every product and sum is exact in a float
        dx = device.allocate(size, stream=stream)
        dy = device.allocate(size, stream=stream)
        driver.cuMemcpyHtoDAsync(int(dx.handle), ctypes.addressof(x), size, stream.handle)
        driver.cuMemcpyHtoDAsync(int(dy.handle), ctypes.addressof(y), size, stream.handle)
        launch(stream, config, kernel, ctypes.c_float(a), dx, dy, ctypes.c_size_t(args.elements))
        driver.cuMemcpyDtoHAsync(ctypes.addressof(out), int(dy.handle), size, stream.handle)
        stream.sync()
        dx.close(stream)
        dy.close(stream)
        for i in range(0, args.elements, 1 + args.elements // 1000):
            if out[i] != a * x[i] + y[i]:
                raise SystemExit(f"round {number}: element {i} is {out[i]}, not {a * x[i] + y[i]}")
        print("round", number, hashlib.sha256(bytes(out)).hexdigest(), flush=True)
    stream.close()


if __name__ == "__main__":
    main()
