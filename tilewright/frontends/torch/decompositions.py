"""Which operators torch breaks into simpler ones before we see them.

Those of core ATen and some more that torch knows how to break up, less the operators that have a
converter here: one kernel of ours is worth more than its parts. What torch cannot break up as we
need it, `decompose` does. Operators that torch has no kernel of its own for, only a composition of
others, are always broken up, but for the few of `WHOLE`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch._decomp import core_aten_decompositions, get_decompositions

from tilewright.frontends.torch.decompose import (
    arithmetic,
    buckets,
    distance,
    embedding,
    floats,
    foreach,
    linear_solve,
    order,
    places,
    pool,
    transformer,
    views,
)
from tilewright.frontends.torch.decompose.backward import table as backward
from tilewright.frontends.torch.table import converters

WHOLE = frozenset({"aten.scaled_dot_product_attention", "aten.linear"})
# Operators that torch breaks up if asked, and are not of those that core ATen does without.
FURTHER = (
    "addmv",
    "dist",
    "rrelu_with_noise_backward",
)
FAMILIES = (
    arithmetic,
    buckets,
    distance,
    embedding,
    floats,
    foreach,
    linear_solve,
    order,
    places,
    pool,
    transformer,
    views,
)


@cache
def decompositions() -> dict[Any, Callable[..., Any]]:
    """The decomposition of every operator that has one and no converter."""
    further = [getattr(torch.ops.aten, name) for name in FURTHER]
    table = {**core_aten_decompositions(), **get_decompositions(further)}
    kept = {op: parts for op, parts in table.items() if not _is_kept(op)}
    return kept | _own()


def _own() -> dict[Any, Callable[..., Any]]:
    """Our own decompositions, of those operators that this version of torch has."""
    families = (*FAMILIES, *backward.FAMILIES)
    named = {name: parts for family in families for name, parts in family.DECOMPOSITIONS.items()}
    found = ((_operator(name), parts) for name, parts in named.items())
    return {op: parts for op, parts in found if op is not None}


def _operator(name: str) -> Any:
    """The operator that is called `aten.add.Tensor`; `None` if torch has none."""
    found: Any = torch.ops
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


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
