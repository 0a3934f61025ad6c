# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""Records the memory trace of a PyTorch training step without a GPU.

import sluice_record

trace = sluice_record.record(make_step, name="my-model", batches=(8, 16), check=(32,))
open("my.trace", "w").write(sluice_record.trace_text(trace))
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .errors import RecordError
from .recording import Trace
from .text import trace_text

if TYPE_CHECKING:
    from .recorder import record

__all__ = ["RecordError", "Trace", "record", "trace_text"]


def __getattr__(name: str) -> Any:
    # PyTorch takes seconds to import, and what reads arguments or writes text does without it.
    if name == "record":
        from .recorder import record

        return record
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
