# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""Which part of an iteration runs: told by who calls, so that a step needs no marks of ours."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.nn.modules.module import register_module_forward_pre_hook
from torch.optim.optimizer import (
    Optimizer,
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)

from .recording import Phase
from .replaced import replaced


class Phases:
    """Watches the autograd engine and all optimizers while it is entered."""

    def __init__(self) -> None:
        self._backward = 0  # calls of the engine that run: checkpointing nests them
        self._optimizer = 0
        self._after_backward = False

    def begin(self) -> None:
        """A new iteration."""
        self._after_backward = False

    @property
    def now(self) -> Phase:
        if self._backward:
            return "backward"
        # Gradient clipping, averages of the weights: what runs behind backward() without a graph.
        if self._optimizer or (self._after_backward and not torch.is_grad_enabled()):
            return "optimizer"
        return "forward"

    @contextlib.contextmanager
    def watching(self) -> Iterator[Phases]:
        before = register_optimizer_step_pre_hook(lambda *_: self._enter_optimizer(1))
        after = register_optimizer_step_post_hook(lambda *_: self._enter_optimizer(-1))
        forward = register_module_forward_pre_hook(lambda *_: self._enter_module())
        try:
            with contextlib.ExitStack() as stack:
                for name in ("backward", "grad"):
                    around = self._around_engine(getattr(torch.autograd, name))
                    stack.enter_context(replaced(torch.autograd, name, around))
                stack.enter_context(replaced(Optimizer, "zero_grad", self._around_zero_grad(Optimizer.zero_grad)))
                yield self
        finally:
            before.remove()
            after.remove()
            forward.remove()

    def _enter_module(self) -> None:
        """The next batch, where gradients are accumulated: what it computes without a graph is no optimizer's."""
        if not self._backward and torch.is_grad_enabled():
            self._after_backward = False

    def _enter_optimizer(self, change: int) -> None:
        self._optimizer += change

    def _around_engine(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            self._backward += 1
            try:
                return function(*args, **kwargs)
            finally:
                self._backward -= 1
                self._after_backward = True

        return call

    def _around_zero_grad(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            self._optimizer += 1
            try:
                return function(*args, **kwargs)
            finally:
                self._optimizer -= 1

        return call
