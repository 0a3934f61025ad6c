# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""Lets autograd run on fake CUDA tensors on a machine without a GPU.

Under FakeTensorMode a PyTorch built for CUDA picks operators and shapes without a driver, but backward() asks the
CUDA runtime for the context and the streams of the device of each gradient (pytorch/pytorch#92627). A fake gradient
needs neither. The engine leaves all of that out when libtorch says that there is no accelerator, and it asks two
small exported functions. Both answer "none" for as long as this is entered, in this process only.
"""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import platform
from collections.abc import Iterator
from pathlib import Path

import torch

from .errors import RecordError

# at::accelerator::getAccelerator(bool) -> optional<DeviceType>, isAccelerator(DeviceType) -> bool.
# An empty optional of one byte comes back in a register as 0, so one machine sequence answers for both.
_FUNCTIONS = (
    "_ZN2at11accelerator14getAcceleratorEb",
    "_ZN2at11accelerator13isAcceleratorEN3c1010DeviceTypeE",
)
_RETURN_ZERO = {
    "x86_64": b"\x31\xc0\xc3",  # xor eax, eax; ret
}
_READ, _WRITE, _EXECUTE = 1, 2, 4  # PROT_* of mprotect(2)


@contextlib.contextmanager
def backward_without_gpu() -> Iterator[None]:
    """Changes nothing where PyTorch finds a GPU. Real CUDA tensors must not be used inside.

    Raises RecordError where PyTorch or the machine is one for which this is not known.
    """
    if torch.version.cuda is None:
        raise RecordError(
            f"this PyTorch ({torch.__version__}) is built without CUDA and would pick another device's operators; "
            "install the build for CUDA (no GPU is needed): on Linux x86-64, `pip install torch` from PyPI"
        )
    if torch.cuda.is_available():
        yield
        return
    code = _RETURN_ZERO.get(platform.machine())
    if code is None:
        raise RecordError(f"recording on {platform.machine()} needs a GPU; without one it works on x86-64")
    addresses = _addresses()
    before = [ctypes.string_at(address, len(code)) for address in addresses]
    try:
        for address in addresses:
            _write_code(address, code)
        # An engine that has run before has looked for devices, and would wait for the thread of one.
        with torch.autograd.set_multithreading_enabled(False):
            yield
    finally:
        for address, old in zip(addresses, before, strict=True):
            _write_code(address, old)


def _addresses() -> list[int]:
    library = ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / "libtorch_cpu.so"))
    addresses = []
    for name in _FUNCTIONS:
        try:
            function = getattr(library, name)
        except AttributeError:
            raise RecordError(
                f"PyTorch {torch.__version__} has no {name}; recording without a GPU was tried with 2.11 and 2.15"
            ) from None
        addresses.append(ctypes.cast(function, ctypes.c_void_p).value or 0)
    return addresses


def _write_code(address: int, code: bytes) -> None:
    _protect(address, len(code), _READ | _WRITE | _EXECUTE)
    ctypes.memmove(address, code, len(code))
    _protect(address, len(code), _READ | _EXECUTE)


def _protect(address: int, length: int, protection: int) -> None:
    page = address & ~(mmap.PAGESIZE - 1)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mprotect(ctypes.c_void_p(page), ctypes.c_size_t(address + length - page), protection) != 0:
        raise RecordError(
            f"the system does not let this process change its own code (errno {ctypes.get_errno()} of mprotect); "
            "record where it does, or on a machine with a GPU"
        )
