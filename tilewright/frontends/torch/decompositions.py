"""Which operators torch breaks into simpler ones before we see them.

Those of core ATen, less the operators that have a converter here: one kernel of ours is worth more
than its parts. Operators that torch has no kernel of its own for, only a composition of others, are
always broken up, but for the few of `WHOLE`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch._decomp import core_aten_decompositions

from tilewright.frontends.torch.table import converters

WHOLE = frozenset({"aten.scaled_dot_product_attention", "aten.linear"})


@cache
def decompositions() -> dict[Any, Callable[..., Any]]:
    """The decomposition of every operator that has one and no converter."""
    table = core_aten_decompositions()
    return {op: parts for op, parts in table.items() if not _is_kept(op)}


def _is_kept(op: Any) -> bool:
    name = packet(str(op))
    if not isinstance(op, torch._ops.OpOverload) or name not in converters():
        return False
    composed = torch._C._dispatch_has_kernel_for_dispatch_key(
        op.name(), torch._C.DispatchKey.CompositeImplicitAutograd
    )
    return name in WHOLE or not composed


def packet(op: str) -> str:
    """`aten.add` for its overload `aten.add.Tensor`."""
    return ".".join(op.split(".")[:2])
