# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""Records one iteration at one batch size."""

from __future__ import annotations

import contextlib
import gc
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch._subclasses import fake_tensor
from torch.utils._pytree import tree_leaves

from .errors import RecordError
from .fake_gpu import backward_without_gpu
from .known_values import KnownValues
from .observer import Observer, measure_lone_counts
from .phases import Phases
from .recording import Alloc, Event, Free, Op, Recording, Sequence
from .replaced import replaced
from .stand_ins import stand_ins

# (step, inputs) of a batch size: an iteration is step(*inputs).
MakeStep = Callable[[int], tuple[Callable[..., Any], tuple[Any, ...]]]

# Optimizer state exists after the first iteration, so the third is steady.
WARM_UP = 2


class Iterations:
    """What is set up once for the recordings of one step; entered by `ready`."""

    def __init__(self, make_step: MakeStep, warm_up: int = WARM_UP, device: str = "cuda") -> None:
        self.stand_ins: set[str] = set()  # those that the step called
        self._make_step = make_step
        self._warm_up = warm_up
        self._device = device  # tests record what a CPU can run for comparison
        self._phases = Phases()
        self._lone_counts: tuple[int, int] | None = None
        # One for all recordings: what a library keeps from one of them may be used in the next.
        self._mode = fake_tensor.FakeTensorMode(allow_non_fake_inputs=True)

    @contextlib.contextmanager
    def ready(self) -> Iterator[Iterations]:
        with warnings.catch_warnings(), backward_without_gpu():
            warnings.filterwarnings("ignore", message="Accessing the data pointer of FakeTensor")
            self._lone_counts = measure_lone_counts()
            with stand_ins(self.stand_ins), self._phases.watching():
                yield self

    def rehearse(self, batch: int) -> None:
        """Runs the step once unseen: what libraries make at their import belongs to no step."""
        with self._mode, KnownValues(), advice():
            step, inputs = self._make(batch)
            step(*inputs)

    def record(self, batch: int) -> Recording:
        """Raises RecordError when the step does not leave the memory as it found it, or cannot run."""
        observer = Observer(self._phases, self._lone_counts, self._device)
        with self._mode, KnownValues(), observer, _ordered_autocast(observer), advice():
            step, inputs = self._make(batch)
            for _ in range(self._warm_up):
                step(*inputs)
            gc.collect()
            before = observer.live()
            with _without_collector():
                self._phases.begin()
                observer.recording = True
                step(*inputs)
                observer.recording = False
                after = observer.live()
            _require_steady(observer, before, after, batch)
            given = set(observer.blocks(tree_leaves(inputs)))
        return _numbered(observer, before, given, batch)

    def _make(self, batch: int) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        with torch.device(self._device):
            made = self._make_step(batch)
        if not (isinstance(made, tuple) and len(made) == 2 and callable(made[0]) and isinstance(made[1], tuple | list)):
            raise RecordError(
                f"make_step({batch}) must return (step, inputs): a function and the tuple of tensors of one batch that "
                f"it is called with, as in `return step, (images, labels)`; it returned {type(made).__name__}"
            )
        return made[0], tuple(made[1])


@contextlib.contextmanager
def advice() -> Iterator[None]:
    """Says what to do about an operator that fake tensors cannot run."""
    try:
        yield
    except fake_tensor.DataDependentOutputException as error:
        raise RecordError(
            f"the step reads a value of a tensor on the host ({error.func}), and a recording has no values. Leave out "
            ".item(), float(tensor), print(tensor) and branches on them while recording"
        ) from error
    except fake_tensor.DynamicOutputShapeException as error:
        raise RecordError(
            f"{error.func} makes a tensor whose size depends on values, and a recording has no values. Use a form of "
            "fixed size while recording (torch.where, a mask)"
        ) from error
    except fake_tensor.UnsupportedOperatorException as error:
        raise RecordError(
            f"{error.func} does not say its output's shape: register it with torch.library.register_fake, or leave the "
            "operator out while recording"
        ) from error


@contextlib.contextmanager
def _ordered_autocast(observer: Observer) -> Iterator[None]:
    """The end of torch.autocast drops its copies of the weights in the order of a hash table of addresses."""
    clear = torch.clear_autocast_cache

    def in_order() -> None:
        with observer.sorted_frees():
            clear()

    with replaced(torch, "clear_autocast_cache", in_order):
        yield


@contextlib.contextmanager
def _without_collector() -> Iterator[None]:
    # Blocks must die by reference count, as they do between two collections of a real run.
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _require_steady(observer: Observer, before: set[int], after: set[int], batch: int) -> None:
    if before == after:
        return
    blocks = [*sorted(after - before), *sorted(before - after)]
    examples = ", ".join(f"{observer.sizes[b]} bytes by {observer.makers[b]}" for b in blocks[:3])
    raise RecordError(
        f"the step at batch {batch} leaves {len(after - before)} new blocks and lacks {len(before - after)} that were "
        f"there before it: {examples}. An iteration must end with the memory that it began with: let go of outputs and "
        "losses that are kept from step to step, call optimizer.zero_grad() at the end, break reference cycles, or "
        "raise --warm-up if the memory settles later"
    )


def _numbered(observer: Observer, before: set[int], given: set[int], batch: int) -> Recording:
    """The same with ids in the order of the format."""
    if not observer.costs:
        raise RecordError(
            "no operator of the step uses the device 'cuda'. make_step runs with it as the default device; do not move "
            "model or batch to 'cpu' where torch.cuda.is_available() is false"
        )
    allocated = [event.block for event in observer.events if isinstance(event, Alloc)]
    persistent = sorted(before - given)
    order = [*persistent, *sorted(given), *allocated]
    number = {serial: i for i, serial in enumerate(order)}
    kinds = ["persistent"] * len(persistent) + ["input"] * len(given) + ["transient"] * len(allocated)

    def renamed(event: Event) -> Event:
        if isinstance(event, Alloc):
            return Alloc(number[event.block])
        if isinstance(event, Free):
            return Free(number[event.block])
        reads, writes = (tuple(number[b] for b in blocks) for blocks in (event.reads, event.writes))
        return Op(event.name, event.phase, reads, writes)

    sequence = Sequence(tuple(kinds), tuple(map(renamed, observer.events)))
    return Recording(batch, sequence, tuple(observer.sizes[serial] for serial in order), tuple(observer.costs))
