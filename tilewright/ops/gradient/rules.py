"""The gradient rules of all families, put into the operators' rows.

They stand apart from the rows since a rule is written with operators of other families: that of
`gather` scatters, that of `conv` is a matrix product.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tilewright.ops.gradient import (
    attention,
    conv,
    elementwise,
    image,
    indexing,
    linalg,
    norm,
    pool,
    recurrent,
    reduction,
    sampling,
    shape,
)
from tilewright.ops.gradient.formula import Parts, Rule
from tilewright.ops.op import Op

_FAMILIES = (elementwise, reduction, norm, shape, indexing, linalg, conv, pool, attention, image)

RULES: dict[str, Rule] = {op: rule for family in _FAMILIES for op, rule in family.RULES.items()}
PARTS: dict[str, Parts] = {
    op: parts
    for family in (norm, linalg, conv, attention, image, sampling)
    for op, parts in family.PARTS.items()
}
NO_GRADIENT: dict[str, str] = {
    op: reason
    for family in (elementwise, indexing, linalg, conv, attention, image, recurrent, sampling)
    for op, reason in family.NO_GRADIENT.items()
}


def attached(rows: Mapping[str, Op]) -> dict[str, Op]:
    """The rows with their gradient rules; one that is short stands in its row already."""
    return {name: _with_gradient(row) for name, row in rows.items()}


def _with_gradient(row: Op) -> Op:
    name = row.name
    return replace(
        row,
        vjp=RULES.get(name, row.vjp),
        parts=PARTS.get(name, row.parts or row.decompose),
        no_gradient=NO_GRADIENT.get(name, row.no_gradient),
    )
