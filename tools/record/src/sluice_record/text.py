# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""Writes the format `sluice-trace 1` (data/traces/README.md in the repository). No PyTorch."""

from __future__ import annotations

import re

from .errors import RecordError
from .recording import Alloc, Free, Linear, Trace

# What the reader allows (scheduler/trace/trace.h in the repository).
MAX_NUMBER = 1 << 53
MAX_BATCH = 1 << 20
MAX_BLOCKS = 1 << 20
MAX_OPERATORS = 1 << 20
MAX_HEADER_LINES = 256
MAX_LINE_BYTES = 1 << 20


def trace_text(trace: Trace) -> str:
    """The whole file. Raises RecordError when the format cannot hold the trace, naming what it is."""
    _check_count("blocks", len(trace.sequence.kinds), MAX_BLOCKS)
    _check_count("operators", len(trace.costs), MAX_OPERATORS)
    _check_count("header lines", len(trace.header), MAX_HEADER_LINES)
    lines = ["# sluice-trace 1"]
    for key, value in trace.header.items():
        check_header(key, value)
        lines.append(f"# {key}={value}")
    for block, (kind, size) in enumerate(zip(trace.sequence.kinds, trace.sizes, strict=True)):
        lines.append(f"block {block} {kind} {_numbers(size, f'bytes of block {block}')}")
    index = 0
    for event in trace.sequence.events:
        if isinstance(event, Alloc):
            lines.append(f"alloc {event.block}")
        elif isinstance(event, Free):
            lines.append(f"free {event.block}")
        else:
            what = f"operator {index} {event.name!r}"
            if not re.fullmatch(r"[!-~]+", event.name):
                raise RecordError(f"{what}: a name must be of printable ASCII characters other than blanks")
            cost = trace.costs[index]
            flops, moved = _numbers(cost.flops, f"operations of {what}"), _numbers(cost.moved, f"bytes of {what}")
            reads, writes = (",".join(map(str, blocks)) for blocks in (event.reads, event.writes))
            lines.append(f"op {index} {event.name} {event.phase} {flops} {moved} r={reads} w={writes}")
            index += 1
    for number, line in enumerate(lines, 1):
        _check_count(f"bytes in line {number} ({line[:40]}...)", len(line), MAX_LINE_BYTES)
    return "\n".join(lines) + "\n"


def check_header(key: str, value: str) -> None:
    if not re.fullmatch(r"[A-Za-z0-9_.-]+", key):
        raise RecordError(f"header key {key!r}: must be of letters, digits, '_', '-' and '.'")
    if not re.fullmatch(r"[ -~]*", value):
        raise RecordError(f"header {key}: {value!r} must be of printable ASCII characters")


def _numbers(line: Linear, what: str) -> str:
    for number in (line.fixed, line.per_sample):
        if not 0 <= number <= MAX_NUMBER:
            raise RecordError(f"{what}: {number} must be 0 to {MAX_NUMBER}")
    return f"{line.fixed} {line.per_sample}"


def _check_count(what: str, count: int, most: int) -> None:
    if count > most:
        raise RecordError(f"{count} {what}, the format allows {most}")
