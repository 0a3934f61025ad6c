# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""The few values that a program reads on the host where it builds a model."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._mode_utils import no_dispatch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only
from torch.utils.weak import WeakTensorKeyDictionary

from .arguments import is_written, with_schema

aten = torch.ops.aten

_MOST = 4096  # elements of a tensor whose values are kept


class KnownValues(TorchDispatchMode):
    """Knows the values of what torch.linspace() makes of numbers, and of what is made of that alone.

    Models spread a rate over their layers with it: `[x.item() for x in torch.linspace(0, rate, depth)]`. Lies right
    above the fake mode, which knows no values. Forgets all of them when one is written to.
    """

    def __init__(self) -> None:
        super().__init__()
        self._values = WeakTensorKeyDictionary()  # real tensors of the host, by fake ones

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # noqa: ANN001
        kwargs = kwargs or {}
        if func.namespace == "prim" or (not self._values and func is not aten.linspace.default):
            return func(*args, **kwargs)
        if func is aten._local_scalar_dense.default and args[0] in self._values:
            return self._on_host(func, args, kwargs)
        result = func(*args, **kwargs)
        written = _written(func, args, kwargs)
        if written:
            self._forget(written)
        elif self._follow(func, args, kwargs) and all(made.numel() <= _MOST for made in _tensors(result)):
            self._note(result, self._on_host(func, args, kwargs))
        return result

    def _follow(self, func, args, kwargs) -> bool:  # noqa: ANN001
        if torch.Tag.nondeterministic_seeded in func.tags:
            return False
        tensors = _tensors((args, kwargs))
        if not tensors:
            return func is aten.linspace.default
        return all(tensor in self._values for tensor in tensors)

    def _on_host(self, func, args, kwargs) -> Any:  # noqa: ANN001
        def known(tensor: torch.Tensor) -> torch.Tensor:
            return self._values[tensor]

        args, kwargs = tree_map_only(torch.Tensor, known, (args, kwargs))
        if any(argument.name == "device" for argument in func._schema.arguments):
            kwargs = {**kwargs, "device": torch.device("cpu")}
        with no_dispatch():
            return func(*args, **kwargs)

    def _note(self, result: Any, real: Any) -> None:
        for made, value in zip(tree_leaves(result), tree_leaves(real), strict=True):
            if isinstance(made, torch.Tensor):
                self._values[made] = value

    def _forget(self, written: list[torch.Tensor]) -> None:
        storages = {tensor.untyped_storage()._cdata for tensor in written}
        if any(known.untyped_storage()._cdata in storages for known in self._values):
            self._values.clear()


def _written(func, args, kwargs) -> list[torch.Tensor]:  # noqa: ANN001
    return _tensors([value for argument, value in with_schema(func, args, kwargs) if is_written(argument)])


def _tensors(values: Any) -> list[torch.Tensor]:
    return [leaf for leaf in tree_leaves(values) if isinstance(leaf, torch.Tensor)]
