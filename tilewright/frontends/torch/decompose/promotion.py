"""Operands brought to the type that torch gives the result of an operator on elements."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch._prims_common import ELEMENTWISE_TYPE_PROMOTION_KIND as KINDS
from torch._prims_common import elementwise_dtypes


def promoted(*values: Any, to_float: bool = False) -> list[Tensor]:
    """Tensors and numbers as tensors of one type; with `to_float` integers become floats."""
    kind = KINDS.INT_TO_FLOAT if to_float else KINDS.DEFAULT
    _, dtype = elementwise_dtypes(*values, type_promotion_kind=kind)
    device = next(v.device for v in values if isinstance(v, Tensor))
    return [
        v.to(dtype) if isinstance(v, Tensor) else torch.full((), v, dtype=dtype, device=device)
        for v in values
    ]


def widened(x: Tensor) -> Tensor:
    """In f32 where elements are 16-bit floats: for more than one rounding."""
    return x.to(torch.float32) if x.is_floating_point() and x.element_size() < 4 else x
