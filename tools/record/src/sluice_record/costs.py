# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The Sluice authors
"""What an operator costs: floating point operations, and bytes of the tensors that it touches."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch.utils.flop_counter import flop_registry

aten = torch.ops.aten


def flops(func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], result: Any) -> int:
    """0 for all but matrix products, convolutions and attention; a multiply-add is two."""
    if func is aten.convolution_backward.default:
        # PyTorch's formula does not divide the weight gradient of a grouped convolution by the groups.
        gradient, image, weight = args[:3]
        transposed, wanted = args[7], args[10]
        places = math.prod((image if transposed else gradient).shape[2:])
        return 2 * image.shape[0] * places * weight.numel() * sum(wanted[:2])
    formula = flop_registry.get(func._overloadpacket)
    return int(formula(*args, **kwargs, out_val=result)) if formula else 0


def touched_bytes(tensors: Iterable[torch.Tensor]) -> int:
    """Of all tensors, each counted once; a broadcast one is smaller than its shape says."""
    distinct = {id(tensor): tensor for tensor in tensors}.values()
    return sum(min(t.numel() * t.element_size(), t.untyped_storage().nbytes()) for t in distinct)
