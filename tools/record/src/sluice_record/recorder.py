# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""Records a step at several batch sizes and makes one trace of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.metadata import version

import torch

from .errors import RecordError
from .fit import fit, verify
from .iteration import WARM_UP, Iterations, MakeStep
from .recording import Trace
from .text import MAX_BATCH, check_header


def record(
    make_step: MakeStep,
    *,
    name: str,
    batches: Sequence[int] = (8, 16),
    check: Sequence[int] = (32,),
    warm_up: int = WARM_UP,
    notes: Mapping[str, str] | None = None,
) -> Trace:
    """The memory trace of one training step, for any batch size. Needs no GPU and no memory for tensors.

    `make_step(batch)` builds model, optimizer and one batch and returns `(step, inputs)`; an iteration is
    `step(*inputs)`. It runs with "cuda" as the default device, on tensors without values. `batches` are the two sizes
    that give the numbers; each size of `check` is recorded, too, and must be what they say. `notes` become header
    lines; they are read after the recording, so that make_step may fill them.

    Raises RecordError, which says what to do. What make_step and step raise themselves passes through.
    """
    _check_sizes(batches, check)
    if warm_up < 1:
        raise RecordError(f"warm-up: {warm_up} must be at least 1, an optimizer makes its state in its first step")
    small, large = batches
    iterations = Iterations(make_step, warm_up)
    with iterations.ready():
        iterations.rehearse(small)
        first = iterations.record(small)
        trace = fit(first, iterations.record(large), {})
        for batch in check:
            verify(trace, first, iterations.record(batch))
    trace.header.update(_header(name, batches, check, iterations.stand_ins, notes or {}))
    return trace


def _check_sizes(batches: Sequence[int], check: Sequence[int]) -> None:
    for batch in (*batches, *check):
        if not 1 <= batch <= MAX_BATCH:
            raise RecordError(f"batch size {batch}: must be 1 to {MAX_BATCH}")
    if len(batches) != 2 or batches[0] == batches[1]:
        raise RecordError(f"batches: {_listed(batches)} must be two different sizes, for example 8,16")
    if not check or set(check) & set(batches):
        raise RecordError(
            f"sizes to verify: '{_listed(check)}' must be one or more other than the fitted {_listed(batches)}"
        )


def _header(
    name: str, batches: Sequence[int], check: Sequence[int], used: set[str], notes: Mapping[str, str]
) -> dict[str, str]:
    header = {"model": name, "framework": f"torch {torch.__version__}"}
    ours = {
        "fitted_batches": _listed(batches),
        "verified_batches": _listed(check),
        "recorder": f"sluice-record {version('sluice-record')}",
        "not_recorded": "kernel-internal temporaries, cuDNN and cuBLAS workspaces, allocator rounding",
    }
    if used:
        ours["stand_ins"] = ", ".join(sorted(used))
    for key, value in notes.items():
        if key in header or key in ours:
            raise RecordError(f"note {key}: the recorder writes that header line itself")
        header[key] = value
    header.update(ours)
    for key, value in header.items():
        check_header(key, value)
    return header


def _listed(sizes: Sequence[int]) -> str:
    return ",".join(map(str, sizes))
