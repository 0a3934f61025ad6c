# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""The command sluice-record."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from .errors import RecordError
from .load import LIBRARIES, load_function, split_target
from .recording import Trace
from .text import trace_text

_DESCRIPTION = """Records the memory trace of a PyTorch training step, for any batch size, without a GPU.

TARGET is FILE.py:FUNCTION or MODULE:FUNCTION, a function of yours that takes a batch size and returns
(step, inputs); or a model with random weights: torchvision:resnet18, timm:NAME, transformers:bert."""


def _sizes(text: str) -> list[int]:
    try:
        return [int(size) for size in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} must be whole numbers with commas between, for example 8,16"
        ) from None


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise argparse.ArgumentTypeError(f"{text!r} must be KEY=VALUE")
    return key, value


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="sluice-record", description=_DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("target", metavar="TARGET", help="what to record")
    parser.add_argument("-o", "--output", metavar="FILE", help="the trace; - is stdout (default: NAME.trace)")
    parser.add_argument("--name", help="the trace's model= (default: of the model, or of the file)")
    parser.add_argument("--batches", type=_sizes, default=[8, 16], metavar="A,B", help="sizes to fit (default: 8,16)")
    parser.add_argument("--verify", type=_sizes, default=[32], metavar="N,..", help="sizes to check (default: 32)")
    parser.add_argument("--warm-up", type=int, default=2, metavar="N", help="iterations before the recorded one (2)")
    parser.add_argument(
        "--note", type=_pair, action="append", default=[], metavar="KEY=VALUE", help="a header line; may be repeated"
    )
    own = parser.add_argument_group("for models of a library")
    own.add_argument("--optimizer", metavar="NAME", help="sgd, adam or adamw (images: sgd, language: adam)")
    own.add_argument("--side", type=int, metavar="PIXELS", help="of a square image (default: the model's)")
    own.add_argument("--tokens", type=int, metavar="N", help="of a sample (default: 128)")
    own.add_argument(
        "--accumulate", type=int, metavar="N", help="batches whose gradients are added up before each step (default: 1)"
    )
    own.add_argument(
        "--config",
        type=_pair,
        action="append",
        metavar="KEY=VALUE",
        help="of a transformers model, for example num_hidden_layers=4; may be repeated",
    )
    return parser


def _record(arguments: argparse.Namespace) -> tuple[str, Trace]:
    place, function = split_target(arguments.target)
    built_in = place in LIBRARIES
    chosen = {key: getattr(arguments, key) for key in ("optimizer", "side", "tokens", "accumulate", "config")}
    chosen = {key: value for key, value in chosen.items() if value is not None}
    for key in ("side", "tokens", "accumulate"):
        if chosen.get(key, 1) < 1:
            raise RecordError(f"--{key}: {chosen[key]} must be at least 1")
    if chosen and not built_in:
        raise RecordError(f"--{next(iter(chosen))}: only for a target {', '.join(LIBRARIES)}:MODEL")
    notes = dict(arguments.note)
    if built_in:
        from .workloads import Options, workload

        chosen["config"] = dict(chosen.get("config", ()))
        make_step = workload(place, function, Options(**chosen))
        for key, value in notes.items():
            if make_step.notes.setdefault(key, value) != value:
                raise RecordError(f"--note {key}: the recorder writes that header line itself")
        notes = make_step.notes  # it adds to them
        name = function
    else:
        make_step = load_function(place, function)
        name = Path(place).stem if place.endswith(".py") else function
    from .recorder import record

    name = arguments.name or name
    trace = record(
        make_step,
        name=name,
        batches=arguments.batches,
        check=arguments.verify,
        warm_up=arguments.warm_up,
        notes=notes,
    )
    return name, trace


def _summary(name: str, trace: Trace, batch: int) -> str:
    persistent, given, peak = (
        f"{size / (1 << 20):.1f} MiB"
        for size in (trace.held("persistent", batch), trace.held("input", batch), trace.peak(batch))
    )
    blocks = trace.sequence.kinds.count("transient")
    return (
        f"{name}: {len(trace.costs)} operators, {blocks} transient blocks; at batch {batch} {persistent} persistent, "
        f"{given} input, {peak} transient at the peak"
    )


def _write(text: str, output: str) -> None:
    if output == "-":
        sys.stdout.write(text)
        return
    try:
        Path(output).write_text(text, encoding="ascii", newline="\n")
    except OSError as error:
        raise RecordError(f"{output} cannot be written: {error.strerror}") from None


def main(argv: Sequence[str] | None = None) -> int:
    """0: written. 1: the step cannot be recorded, stderr says why. 2: an argument is wrong."""
    arguments = _parser().parse_args(argv)
    try:
        name, trace = _record(arguments)
        _write(trace_text(trace), arguments.output or f"{name}.trace")
    except RecordError as error:
        print(f"sluice-record: {error}", file=sys.stderr)
        return 1
    print(_summary(name, trace, arguments.verify[-1]), file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
