# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""Sees every operator and the life of every storage on the device."""

from __future__ import annotations

import contextlib
import dataclasses
import weakref
from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from . import costs
from .arguments import is_written, with_schema
from .errors import RecordError
from .phases import Phases
from .recording import Alloc, Cost, Event, Free, Op

aten = torch.ops.aten

# Give memory without launching a kernel on the device; lift_fresh stands for a constant from the host.
_ALLOCATE_ONLY = {
    aten.lift_fresh.default,
    aten.empty.memory_format,
    aten.empty_strided.default,
    aten.empty_like.default,
    aten.new_empty.default,
    aten.new_empty_strided.default,
}
# Overwrite their first argument without reading it.
_OVERWRITE = {
    aten.copy_.default,
    aten.zero_.default,
    aten.fill_.Scalar,
    aten.fill_.Tensor,
    aten.bernoulli_.float,
    aten.bernoulli_.Tensor,
    aten.normal_.default,
    aten.uniform_.default,
}


@dataclasses.dataclass
class _Storage:
    serial: int
    watch: weakref.ref  # its callback is how the end is known


class Observer(TorchDispatchMode):
    """Follows every storage from its first sight on; logs events and costs while `recording`.

    Events name storages by serial number. Reference counts that a gradient has when the autograd engine alone holds
    it, `lone_counts`, are measured by `measure_lone_counts`.
    """

    def __init__(self, phases: Phases, lone_counts: tuple[int, int] | None = None, device: str = "cuda") -> None:
        super().__init__()
        self.recording = False
        self.events: list[Event] = []
        self.costs: list[Cost] = []
        self.sizes: list[int] = []  # by serial number
        self.makers: list[str] = []  # the operator that gave each storage, for messages
        self.seen_counts: list[tuple[int, int]] = []
        self._phases = phases
        self._lone_counts = lone_counts
        self._device = device
        self._live: dict[int, _Storage] = {}  # by the address of the StorageImpl

    def live(self) -> set[int]:
        return {storage.serial for storage in self._live.values()}

    def blocks(self, tensors: Iterable[Any], maker: str = "an operator that was not seen") -> list[int]:
        """Serial numbers of the storages under all tensors on the device, each once; logs those never seen."""
        serials = (self._block(tensor, maker) for tensor in self._on_device(tensors))
        return list(dict.fromkeys(serial for serial in serials if serial is not None))

    @contextlib.contextmanager
    def sorted_frees(self) -> Iterator[None]:
        """Around what lets go of many blocks at once in an order that depends on addresses: by age instead."""
        start = len(self.events)
        yield
        freed = self.events[start:]
        if all(isinstance(event, Free) for event in freed):
            self.events[start:] = sorted(freed, key=lambda free: free.block)

    def _on_device(self, values: Any) -> list[torch.Tensor]:
        return [t for t in tree_leaves(values) if isinstance(t, torch.Tensor) and t.device.type == self._device]

    def _block(self, tensor: torch.Tensor, maker: str) -> int | None:
        storage = tensor.untyped_storage()
        size, address = storage.nbytes(), storage._cdata
        known = self._live.get(address)
        if known is None:
            if size == 0:
                return None
            # All views share one storage, so this is called when the last tensor on it dies.
            watch = weakref.ref(storage, lambda _: self._freed(address))
            known = self._live[address] = _Storage(len(self.sizes), watch)
            self.sizes.append(size)
            self.makers.append(maker)
            if self.recording:
                self.events.append(Alloc(known.serial))
        elif size != self.sizes[known.serial]:
            raise RecordError(
                f"a storage of {self.sizes[known.serial]} bytes (made by {self.makers[known.serial]}) was resized to "
                f"{size}: a trace has blocks of one size. Make a new tensor instead of resize_()"
            )
        return known.serial

    def _freed(self, address: int) -> None:
        serial = self._live.pop(address).serial
        if self.recording:
            self.events.append(Free(serial))

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # noqa: ANN001
        kwargs = kwargs or {}
        if func.namespace == "prim":
            return func(*args, **kwargs)
        if self._phases.now == "backward" and not torch.is_grad_enabled():
            func = self._as_without_mode(func, args, kwargs)
        result = func(*args, **kwargs)
        self._observe(func, args, kwargs, result)
        return result

    def _as_without_mode(self, func, args, kwargs):  # noqa: ANN001
        """Restores two in-place operations of backward().

        When two gradients of one value meet, the engine adds into the first if nothing else refers to it, and the
        gradient of indexing is put into its zeros in place. It does both out of place while a dispatch mode is
        active, which is the case here and not in the run that we imitate.
        """
        if func is aten.index_put.default:
            return aten.index_put_.default
        if func is not aten.add.Tensor or kwargs or not isinstance(args[1], torch.Tensor):
            return func
        old, new = args
        if old.shape != new.shape or old.dtype != new.dtype:
            return func
        counts = (old._use_count(), torch._C._storage_Use_Count(old.untyped_storage()._cdata))
        self.seen_counts.append(counts)
        if counts == self._lone_counts and aten.is_non_overlapping_and_dense.default(old):
            return aten.add_.Tensor
        return func

    def _observe(self, func, args, kwargs, result) -> None:  # noqa: ANN001
        inputs: list[torch.Tensor] = []
        written: list[torch.Tensor] = []
        overwritten: set[int] = set()  # ids of tensors
        for argument, value in with_schema(func, args, kwargs):
            tensors = self._on_device(value)
            inputs += tensors
            if is_written(argument):
                written += tensors
                if func in _OVERWRITE or argument.is_out:
                    overwritten.update(map(id, tensors))
        outputs = self._on_device(result)

        name = str(func).removeprefix("aten.").removesuffix(".default")
        used = self.blocks(inputs)
        known = len(self.sizes)
        produced = self.blocks(outputs, name)  # logs the allocations, before the operator that needs them
        fresh = [block for block in produced if block >= known]
        if not self.recording or func in _ALLOCATE_ONLY or not (used or produced):
            return
        if not fresh and not written:
            return  # only made a view: no kernel
        read = [tensor for tensor in inputs if id(tensor) not in overwritten]
        writes = self.blocks(written)
        writes += [block for block in fresh if block not in writes]
        moved = costs.touched_bytes(read) + costs.touched_bytes([*outputs, *written])
        self.events.append(Op(name, self._phases.now, tuple(self.blocks(read)), tuple(writes)))
        self.costs.append(Cost(costs.flops(func, args, kwargs, result), moved))


def measure_lone_counts() -> tuple[int, int]:
    """The reference counts of a gradient that meets another one and has no owner but the engine."""
    phases = Phases()
    observer = Observer(phases)
    with phases.watching(), FakeTensorMode(), observer:
        x = torch.ones(4, device="cuda", requires_grad=True)
        y = x.sin()
        ((y * 2) * (y * 3)).sum().backward()
    (counts,) = observer.seen_counts
    return counts
