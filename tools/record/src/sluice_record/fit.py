# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""Two recordings at different batch sizes make a trace; further ones check it. No PyTorch."""

from __future__ import annotations

from collections.abc import Iterator

from .errors import RecordError
from .recording import Alloc, Event, Free, Linear, LinearCost, Recording, Sequence, Trace


def fit(small: Recording, large: Recording, header: dict[str, str]) -> Trace:
    """The trace through both recordings.

    Raises RecordError when they differ in more than numbers, or when a number is no whole amount per
    sample on top of a fixed one: the format has no sign and no fraction.
    """
    require_same_sequence(small, large)
    numbers = []
    for what, at_small, at_large in _pairs(small, large):
        per_sample, rest = divmod(at_large - at_small, large.batch - small.batch)
        fixed = at_small - per_sample * small.batch
        if rest or per_sample < 0 or fixed < 0:
            raise RecordError(
                f"{what}: {at_small} at batch {small.batch} and {at_large} at batch {large.batch} is not a fixed "
                "number plus a whole one per sample. Something in the step rounds, or grows otherwise than with the "
                "batch. Choose batch sizes between which it does not, or make its size independent of the batch"
            )
        numbers.append(Linear(fixed, per_sample))
    sizes = tuple(numbers[: len(small.sizes)])
    costs = iter(numbers[len(small.sizes) :])
    return Trace(header, small.sequence, sizes, tuple(LinearCost(flops, next(costs)) for flops in costs))


def verify(trace: Trace, first: Recording, other: Recording) -> None:
    """Raises RecordError when `other`, recorded at a further batch size, is not what `trace` says."""
    require_same_sequence(first, other)
    wrong = []
    lines = [*trace.sizes, *(line for cost in trace.costs for line in (cost.flops, cost.moved))]
    for line, (what, _, actual) in zip(lines, _pairs(first, other), strict=True):
        if line.at(other.batch) != actual:
            wrong.append(f"{what}: the fit says {line.at(other.batch)}, a recording {actual}")
    if wrong:
        raise RecordError(
            f"{len(wrong)} of {len(lines)} numbers are not linear in the batch, seen at batch {other.batch}. "
            f"The first: {wrong[0]}. Choose batch sizes between which the step does the same, or make what differs "
            "independent of the batch"
        )


def require_same_sequence(a: Recording, b: Recording) -> None:
    if a.sequence == b.sequence:
        return
    advice = "The step must do the same at each batch size: look for code that branches on it"
    counts = [tuple(r.sequence.kinds.count(kind) for kind in ("persistent", "input")) for r in (a, b)]
    if counts[0] != counts[1]:
        raise RecordError(
            f"{counts[0][0]} persistent and {counts[0][1]} input blocks at batch {a.batch}, "
            f"{counts[1][0]} and {counts[1][1]} at batch {b.batch}. {advice}"
        )
    events = a.sequence.events, b.sequence.events
    place = next((i for i, (x, y) in enumerate(zip(*events, strict=False)) if x != y), min(map(len, events)))
    texts = [_event_text(r, place) for r in (a, b)]
    if texts[0] == texts[1]:
        texts = [f"{_event_text(r, place)} ({r.sequence.events[place]})" for r in (a, b)]
    raise RecordError(
        f"the sequence of operators and allocations depends on the batch size: event {place} is {texts[0]} at batch "
        f"{a.batch}, {texts[1]} at batch {b.batch}, after {_last_operator(a.sequence, place)}. {advice}"
    )


def _pairs(a: Recording, b: Recording) -> Iterator[tuple[str, int, int]]:
    """Every number of both with its name: sizes, then flops and bytes of each operator."""
    users = _first_users(a.sequence)
    for block, (x, y) in enumerate(zip(a.sizes, b.sizes, strict=True)):
        yield f"bytes of block {block} ({a.sequence.kinds[block]}, first used by {users.get(block, 'nobody')})", x, y
    for index, (op, x, y) in enumerate(zip(a.sequence.operators(), a.costs, b.costs, strict=True)):
        yield f"operations of operator {index} {op.name} ({op.phase})", x.flops, y.flops
        yield f"bytes of operator {index} {op.name} ({op.phase})", x.moved, y.moved


def _first_users(sequence: Sequence) -> dict[int, str]:
    users: dict[int, str] = {}
    for index, op in enumerate(sequence.operators()):
        for block in (*op.reads, *op.writes):
            users.setdefault(block, f"operator {index} {op.name}")
    return users


def _event_text(recording: Recording, place: int) -> str:
    if place >= len(recording.sequence.events):
        return "the end"
    event: Event = recording.sequence.events[place]
    if isinstance(event, Alloc):
        return f"alloc of block {event.block} ({recording.sizes[event.block]} bytes)"
    if isinstance(event, Free):
        return f"free of block {event.block} ({recording.sizes[event.block]} bytes)"
    return f"operator {event.name} ({event.phase})"


def _last_operator(sequence: Sequence, place: int) -> str:
    names = [event.name for event in sequence.events[:place] if not isinstance(event, Alloc | Free)]
    return f"operator {len(names) - 1} {names[-1]}" if names else "the beginning"
