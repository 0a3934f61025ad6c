#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""Fills a GPU on request, so that a large one has no more room than a test wants it to have.

A line on standard input each, answered by the GPU's free bytes afterwards: "free" does nothing more, "leave N"
allocates until no more than N bytes (rounded up to a piece) are free. Lets go of everything at the end of its input.
"""
import ctypes
import sys

# What drivers map memory in; smaller pieces would not be smaller.
PIECE = 2 << 20
OUT_OF_MEMORY = 2


class Gpu:
    """Device 0, in its primary context."""

    def __init__(self):
        self._cuda = ctypes.CDLL("libcuda.so.1")
        context = ctypes.c_void_p()
        device = ctypes.c_int()
        self._check("cuInit", 0)
        self._check("cuDeviceGet", ctypes.byref(device), 0)
        self._check("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self._check("cuCtxSetCurrent", context)

    def free_bytes(self):
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self._check("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        return free.value

    def leave(self, wanted):
        piece = self.free_bytes()
        while piece >= PIECE and self.free_bytes() - wanted >= PIECE:
            piece = min(piece, self.free_bytes() - wanted) // PIECE * PIECE
            address = ctypes.c_uint64()
            code = self._cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(piece))
            if code == OUT_OF_MEMORY:
                # Free memory need not be in one piece.
                piece //= 2
            elif code != 0:
                sys.exit(f"cuMemAlloc answers {code}")

    def _check(self, call, *parameters):
        code = getattr(self._cuda, call)(*parameters)
        if code != 0:
            sys.exit(f"{call} answers {code}")


def main():
    gpu = Gpu()
    for line in sys.stdin:
        command, *numbers = line.split()
        if command == "leave":
            gpu.leave(int(numbers[0]))
        print(gpu.free_bytes(), flush=True)


if __name__ == "__main__":
    main()
