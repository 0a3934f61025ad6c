# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""What an operator is called with, beside what its schema says of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def with_schema(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[tuple[Any, Any]]:
    """The arguments that are given, each behind its entry of the schema."""
    schema = func._schema.arguments
    return [*zip(schema, args, strict=False), *((a, kwargs[a.name]) for a in schema if a.name in kwargs)]


def is_written(argument: Any) -> bool:
    """Whether the operator writes to what is given for this entry of the schema."""
    return argument.alias_info is not None and argument.alias_info.is_write
