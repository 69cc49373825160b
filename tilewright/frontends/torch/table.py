"""The table of ATen operators that have a converter, gathered from the family files.

An operator is listed without its overload: `aten.add` is `aten.add.Tensor` and `aten.add.Scalar`.
"""

from __future__ import annotations

from difflib import get_close_matches
from functools import cache

from tilewright.core.errors import Loc, UnsupportedError
from tilewright.frontends.torch.context import Converter
from tilewright.frontends.torch.convert import (
    attention,
    backward,
    conv,
    creation,
    division,
    elementwise,
    factorization,
    index,
    logic,
    matmul,
    norm,
    pool,
    random,
    reduce,
    resize,
    shape,
    slicing,
    special,
    windows,
)

FAMILIES = (
    attention,
    backward,
    conv,
    elementwise,
    factorization,
    creation,
    division,
    index,
    logic,
    matmul,
    norm,
    pool,
    random,
    reduce,
    resize,
    shape,
    slicing,
    special,
    windows,
)


@cache
def converters() -> dict[str, Converter]:
    """Every converter by the name of its operator."""
    return {name: convert for family in FAMILIES for name, convert in family.CONVERTERS.items()}


def converter(op: str, loc: Loc) -> Converter:
    """The converter of an operator that was called at `loc`; `op` may name an overload."""
    packet = ".".join(op.split(".")[:2])
    found = converters().get(packet)
    if found is None:
        near = get_close_matches(packet, converters(), 3)
        raise UnsupportedError(
            "torch.operator",
            f"the operator {op} is not supported",
            loc=loc,
            help=f"supported are {', '.join(near)}, ..." if near else "see docs/howto/pytorch.md",
        )
    return found
