"""Operators on lists of tensors, which steps of optimizers are made of: one for each tensor.

aten._foreach_add.List([a, b], [c, d], alpha=2)  ->  [add(a, c, alpha=2), add(b, d, alpha=2)]
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

_PREFIX = "_foreach_"
_OF_NUMBERS_IN_A_TENSOR = ("aten._foreach_addcdiv.Tensor", "aten._foreach_addcmul.Tensor")


def _norm(x: Tensor, order: float, dtype: torch.dtype | None) -> Tensor:
    found: Tensor = torch.linalg.vector_norm(x, order, dtype=dtype)
    return found


def _power_sum(x: Tensor, order: float, dtype: torch.dtype | None) -> Tensor:
    return x.to(dtype or x.dtype).abs().pow(order).sum()


def _maximum(x: Tensor, other: Any) -> Tensor:
    return torch.maximum(x, other) if isinstance(other, Tensor) else x.clamp_min(other)


def _minimum(x: Tensor, other: Any) -> Tensor:
    return torch.minimum(x, other) if isinstance(other, Tensor) else x.clamp_max(other)


# Where an operator on one tensor is not called the same or takes other arguments.
_OWN: dict[str, Callable[..., Tensor]] = {
    "addcdiv": lambda x, a, b, scale: torch.addcdiv(x, a, b, value=scale),
    "addcmul": lambda x, a, b, scale: torch.addcmul(x, a, b, value=scale),
    "clone": lambda x, memory_format: x.clone(memory_format=memory_format),
    "copy": lambda x, source, non_blocking: torch.ops.aten.copy(x, source),
    "maximum": _maximum,
    "minimum": _minimum,
    "norm": _norm,
    "powsum": _power_sum,
    "zero": torch.zeros_like,
}


def each(operator: Any) -> Callable[..., list[Tensor]]:
    """An operator on lists as one on each of their tensors."""
    name = operator._schema.name.removeprefix(f"aten::{_PREFIX}")
    own = _OWN.get(name) or getattr(torch, name)
    schema = operator._schema.arguments
    lists = [i for i, a in enumerate(schema) if "List" in str(a.type)]
    named = {a.name for a in schema if a.kwarg_only and name not in _OWN}

    def decompose(*args: Any, **kwargs: Any) -> list[Tensor]:
        rest = [kwargs.get(a.name, a.default_value) for a in schema[len(args) :]]
        given = [*args, *rest]
        found = []
        for k in range(len(given[lists[0]])):
            own_args = [v[k] if i in lists else v for i, v in enumerate(given)]
            pairs = list(zip(schema, own_args, strict=True))
            plain = [v for a, v in pairs if a.name not in named]
            found.append(own(*plain, **{a.name: v for a, v in pairs if a.name in named}))
        return found

    return decompose


def _functional() -> list[Any]:
    """All operators on lists that give new tensors, but those that torch itself cannot trace."""
    found = []
    for full in torch._C._dispatch_get_all_op_names():
        name, _, overload = full.removeprefix("aten::").partition(".")
        if name.startswith(_PREFIX) and not name.endswith("_") and "out" not in overload:
            found.append(getattr(getattr(torch.ops.aten, name), overload or "default"))
    return [op for op in found if str(op) not in _OF_NUMBERS_IN_A_TENSOR]


def fma(a: Tensor, b: Tensor, c: Tensor) -> Tensor:
    """A product and a sum, which one instruction may round once."""
    return a * b + c


DECOMPOSITIONS: dict[str, Callable[..., Any]] = {str(op): each(op) for op in _functional()} | {
    "prims.fma.default": fma
}
