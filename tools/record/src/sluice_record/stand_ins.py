# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""Replaces what cannot run on fake tensors without a GPU by something with the memory behaviour that it has on one."""

from __future__ import annotations

import contextlib
import functools
import pkgutil
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensor
from torch.nn import functional
from torch.optim import optimizer

from .errors import RecordError
from .replaced import replaced

ATTENTION = "memory-efficient attention"
FLASH = "flash attention"
_TO_LIST = torch.Tensor.tolist
RECURRENT = "recurrent layers step by step (cuDNN off)"


@contextlib.contextmanager
def stand_ins(used: set[str]) -> Iterator[None]:
    """Notes in `used` which of those that a reader of the trace should know of were called."""
    with contextlib.ExitStack() as stack:
        _optimizers(stack)
        # Autocast turns itself off where there is no GPU, with a warning: another step would be recorded.
        stack.enter_context(replaced(torch.cuda.amp.common, "amp_definitely_not_available", lambda: False))
        stack.enter_context(replaced(torch.cuda, "is_bf16_supported", lambda *_, **__: True))
        stack.enter_context(replaced(functional, "scaled_dot_product_attention", functools.partial(_attention, used)))
        for layer in (nn.LSTM, nn.GRU, nn.RNN):
            stack.enter_context(replaced(layer, "forward", _without_cudnn(layer.forward, used)))
        stack.enter_context(replaced(nn.RNNBase, "flatten_parameters", lambda self: None))
        stack.enter_context(replaced(torch.Tensor, "tolist", _to_list))
        # What is behind nn.init.trunc_normal_, which others have imported by then.
        stack.enter_context(replaced(nn.init, "_no_grad_trunc_normal_", _drawn))
        yield


def _optimizers(stack: contextlib.ExitStack) -> None:
    # The variant for many tensors at once is PyTorch's choice for CUDA parameters, by their exact type.
    kinds = [*optimizer._foreach_supported_types, FakeTensor]
    stack.enter_context(replaced(optimizer, "_foreach_supported_types", kinds))
    # Adam and others read their step counter on the host. A fake one has no value; late in a training the exact one
    # changes no shape and no branch (early on RAdam does less).
    for module in pkgutil.iter_modules(torch.optim.__path__, "torch.optim."):
        if not module.ispkg and hasattr(import_module(module.name), "_get_value"):
            stack.enter_context(replaced(import_module(module.name), "_get_value", lambda step: 1000.0))


def _attention(
    used: set[str],
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attn_mask: torch.Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> torch.Tensor:
    """What PyTorch chooses on a GPU; without one it falls back to plain matrix products.

    Flash attention takes half precision without a mask, the memory-efficient kernel all else.
    """
    if enable_gqa:
        raise RecordError(
            "scaled_dot_product_attention with enable_gqa: which kernel a GPU takes is not known without one. Repeat "
            "keys and values in the model, or choose its plain attention (transformers: attn_implementation=eager)"
        )
    if torch.is_autocast_enabled("cuda"):
        # The operator that this stands for is one that autocast gives its low precision.
        low = torch.get_autocast_dtype("cuda")
        query, key, value = (t.to(low) if t.dtype == torch.float32 else t for t in (query, key, value))
    # The flash kernel takes heads whose width is a multiple of 8; PyTorch pads others.
    if query.dtype in (torch.float16, torch.bfloat16) and attn_mask is None and query.shape[-1] % 8 == 0:
        used.add(FLASH)
        return torch.ops.aten._scaled_dot_product_flash_attention(
            query, key, value, dropout_p, is_causal, False, scale=scale
        )[0]
    used.add(ATTENTION)
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        forbidden = attn_mask.logical_not()
        attn_mask = torch.zeros_like(attn_mask, dtype=query.dtype).masked_fill_(forbidden, float("-inf"))
    elif attn_mask is not None:
        attn_mask = attn_mask.to(query.dtype)
    keeps = torch.is_grad_enabled() and any(t.requires_grad for t in (query, key, value))
    return torch.ops.aten._scaled_dot_product_efficient_attention(
        query, key, value, attn_mask, keeps, dropout_p, is_causal, scale=scale
    )[0]


def _without_cudnn(forward: Callable[..., Any], used: set[str]) -> Callable[..., Any]:
    """cuDNN asks the driver for its layout of the weights, and its reserve space has a size that only it knows."""

    @functools.wraps(forward)
    def call(*args: Any, **kwargs: Any) -> Any:
        used.add(RECURRENT)
        with torch.backends.cudnn.flags(enabled=False):
            return forward(*args, **kwargs)

    return call


def _to_list(tensor: torch.Tensor) -> Any:
    """PyTorch's own takes no fake tensors, though the values of some are known (known_values.py)."""
    if not isinstance(tensor, FakeTensor):
        return _TO_LIST(tensor)
    return tensor.item() if tensor.dim() == 0 else [_to_list(part) for part in tensor.unbind()]


def _drawn(weights: torch.Tensor, mean: float, std: float, *_: Any, **__: Any) -> torch.Tensor:
    """One draw; PyTorch draws anew until all of them lie within their bounds. Fake ones have no values to compare."""
    with torch.no_grad():
        return weights.normal_(mean, std)
