# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""One recorded iteration, and the trace that several of them make. Plain values, no PyTorch."""

from __future__ import annotations

import dataclasses
from typing import Literal

Kind = Literal["persistent", "input", "transient"]
Phase = Literal["forward", "backward", "optimizer"]


@dataclasses.dataclass(frozen=True)
class Alloc:
    block: int


@dataclasses.dataclass(frozen=True)
class Free:
    block: int


@dataclasses.dataclass(frozen=True)
class Op:
    """An operator that launches at least one kernel."""

    name: str
    phase: Phase
    reads: tuple[int, ...]
    writes: tuple[int, ...]


Event = Alloc | Free | Op


@dataclasses.dataclass(frozen=True)
class Cost:
    """Of one operator at one batch size."""

    flops: int  # a multiply-add is two
    moved: int  # bytes read plus bytes written


@dataclasses.dataclass(frozen=True)
class Sequence:
    """What must not depend on the batch size.

    Block ids count from 0: persistent blocks, then inputs, then transient ones in the order of their
    allocation. Events are in program order.
    """

    kinds: tuple[Kind, ...]
    events: tuple[Event, ...]

    def operators(self) -> list[Op]:
        return [event for event in self.events if isinstance(event, Op)]


@dataclasses.dataclass(frozen=True)
class Recording:
    """One iteration at one batch size."""

    batch: int
    sequence: Sequence
    sizes: tuple[int, ...]  # bytes of each block
    costs: tuple[Cost, ...]  # of each operator


@dataclasses.dataclass(frozen=True)
class Linear:
    """A number that depends on the batch size."""

    fixed: int
    per_sample: int

    def at(self, batch: int) -> int:
        return self.fixed + self.per_sample * batch


@dataclasses.dataclass(frozen=True)
class LinearCost:
    flops: Linear
    moved: Linear


@dataclasses.dataclass(frozen=True)
class Trace:
    """An iteration at any batch size: what a file of the format `sluice-trace 1` holds."""

    header: dict[str, str]
    sequence: Sequence
    sizes: tuple[Linear, ...]
    costs: tuple[LinearCost, ...]

    def held(self, kind: Kind, batch: int) -> int:
        """Bytes of all persistent or all input blocks."""
        return sum(size.at(batch) for of, size in zip(self.sequence.kinds, self.sizes, strict=True) if of == kind)

    def peak(self, batch: int) -> int:
        """Most bytes that the transient blocks hold at once."""
        load = highest = 0
        for event in self.sequence.events:
            if isinstance(event, Alloc):
                load += self.sizes[event.block].at(batch)
                highest = max(highest, load)
            elif isinstance(event, Free):
                load -= self.sizes[event.block].at(batch)
        return highest
