# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""Finds the function that makes a step: in a file, in a module, or among the built-in ones. No PyTorch."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from .errors import RecordError

LIBRARIES = ("torchvision", "timm", "transformers")

USAGE = (
    "must be FILE.py:FUNCTION, MODULE:FUNCTION or LIBRARY:MODEL, where LIBRARY is one of "
    f"{', '.join(LIBRARIES)}; for example my_training.py:make_step or torchvision:resnet18"
)


def split_target(target: str) -> tuple[str, str]:
    """The place and the name of a target."""
    place, colon, name = target.rpartition(":")
    if not colon or not place or not name:
        raise RecordError(f"target {target!r}: {USAGE}")
    return place, name


def load_function(place: str, name: str) -> Callable[[int], Any]:
    """The function `name` of a file (its place ends in .py) or of a module that can be imported."""
    module = _load_file(Path(place)) if place.endswith(".py") else _import(place)
    try:
        function = getattr(module, name)
    except AttributeError:
        own = [n for n, v in vars(module).items() if callable(v) and getattr(v, "__module__", "") == module.__name__]
        raise RecordError(f"{place} has no function {name!r}; it has: {', '.join(own) or 'none'}") from None
    if not callable(function):
        raise RecordError(f"{name!r} of {place} is no function, it is a {type(function).__name__}")
    return function


def _load_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise RecordError(f"no file {path}")
    # As when Python runs the file: its neighbours can be imported.
    folder = str(path.resolve().parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    # A name of its own: the file may be called like a module that is there already.
    name = f"sluice_record_target_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise RecordError(f"{path} cannot be loaded as a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _import(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if name != missing and not name.startswith(missing + "."):
            raise  # the module is there, and imports one that is not
        raise RecordError(f"no module {name!r}: a target {USAGE}") from None
