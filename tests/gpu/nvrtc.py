#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""Compiles one file of CUDA C for the machine's GPU, with the NVRTC of the machine.

Usage: nvrtc.py LIBRARY SOURCE OUT CAPABILITY [OPTION]...     (90 for compute capability 9.0)
"""
import ctypes
import pathlib
import sys


class Nvrtc:
    def __init__(self, path):
        self._library = ctypes.CDLL(path)
        self._library.nvrtcGetErrorString.restype = ctypes.c_char_p
        self._program = ctypes.c_void_p()

    def compile(self, source, name, options):
        self._check("nvrtcCreateProgram", ctypes.byref(self._program), source, name, 0, None, None)
        flags = (ctypes.c_char_p * len(options))(*options)
        code = self._library.nvrtcCompileProgram(self._program, len(options), flags)
        if code != 0:
            log = self._text("nvrtcGetProgramLogSize", "nvrtcGetProgramLog")
            raise RuntimeError("NVRTC: " + log.decode(errors="replace").strip()[:400])

    def image(self):
        """Machine code, which no driver has to compile once more in every process; PTX where there is none."""
        try:
            code = self._text("nvrtcGetCUBINSize", "nvrtcGetCUBIN")
        except RuntimeError:
            code = b""
        return code or self._text("nvrtcGetPTXSize", "nvrtcGetPTX")

    def _text(self, size_of, get):
        size = ctypes.c_size_t()
        self._check(size_of, self._program, ctypes.byref(size))
        text = ctypes.create_string_buffer(max(1, size.value))
        if size.value:
            self._check(get, self._program, text)
        return text.raw[:size.value]

    def _check(self, call, *parameters):
        code = getattr(self._library, call)(*parameters)
        if code != 0:
            raise RuntimeError(f"{call}: {self._library.nvrtcGetErrorString(code).decode()}")


def main():
    library, source, out, capability, *more = sys.argv[1:]
    nvrtc = Nvrtc(library)
    nvrtc.compile(pathlib.Path(source).read_bytes(), pathlib.Path(source).name.encode(),
                  [f"--gpu-architecture=sm_{capability}".encode(), *(option.encode() for option in more)])
    pathlib.Path(out).write_bytes(nvrtc.image())


if __name__ == "__main__":
    try:
        main()
    except (OSError, RuntimeError) as error:
        sys.exit(f"nvrtc.py: {error}")
