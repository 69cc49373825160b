"""Recognize causal masks: they become the sliding window of an attention operator.

    constant        0 up to the diagonal, -inf beyond
    computed        where(less_or_equal(key number, query number), 0, -inf)

A window needs no memory, and blocks outside it are not computed.
"""

from __future__ import annotations

import numpy as np

from tilewright.arith.expr import Expr, const
from tilewright.arith.simplify import prove, simplify
from tilewright.core.dtypes import BOOL
from tilewright.ir.graph.nodes import Node
from tilewright.ir.types import TensorType
from tilewright.ops.tensor.creation import RangeAttrs
from tilewright.passes.algebra.patterns import uniform
from tilewright.passes.rewriter import Rewriter

# Added to a score, this leaves nothing of its exponential beside any other.
MASKED_SCORE = -1e30
ONE = const(1)
# Steps that give numbers another shape and nothing else.
SHAPED = ("reshape", "expand")
# Comparisons as `left < right + slack`, and which operand is on the left.
COMPARISONS = {
    "less_or_equal": (0, 1),
    "less": (0, 0),
    "greater_or_equal": (1, 1),
    "greater": (1, 0),
}


def causal_offset(g: Rewriter, mask: str) -> Expr | None:
    """`n` if adding the mask lets query `i` see just the keys up to `i + n`, at least one."""
    data = g.constant_data(mask)
    if data is not None:
        found = constant_offset(data)
        return None if found is None else const(found)
    n = g.producer(mask)
    if n is None or n.op != "where" or len(n.inputs) != 3:
        return None
    seen, hidden = (_number(g, value) for value in n.inputs[1:])
    if seen != 0 or hidden is None or hidden > MASKED_SCORE:
        return None
    return _compared_offset(g, g.producer(n.inputs[0]))


def constant_offset(data: np.ndarray) -> int | None:
    """The same for the content of a mask."""
    if data.dtype == BOOL.numpy or data.ndim < 2 or data.size != data.shape[-1] * data.shape[-2]:
        return None
    queries, keys = data.shape[-2:]
    table = data.reshape(queries, keys)
    offset = int(np.count_nonzero(table[:1] == 0)) - 1
    i, j = np.arange(queries)[:, None], np.arange(keys)
    hiding = (
        max(MASKED_SCORE, float(np.finfo(data.dtype).min))
        if data.dtype.kind == "f"
        else MASKED_SCORE
    )
    fits = np.where(j <= i + offset, table == 0, table <= hiding).all()
    return offset if offset >= 0 and fits else None


def _number(g: Rewriter, value: str) -> float | None:
    data = g.constant_data(value)
    return None if data is None else uniform(data)


def _compared_offset(g: Rewriter, n: Node | None) -> Expr | None:
    """From a comparison of key numbers with query numbers."""
    if n is None or n.op not in COMPARISONS:
        return None
    left, slack = COMPARISONS[n.op]
    keys = _numbers(g, n.inputs[left], axis=-1)
    queries = _numbers(g, n.inputs[1 - left], axis=-2)
    if keys is None or queries is None:
        return None
    offset = simplify(queries - keys + (slack - 1))
    return offset if prove(const(0) <= offset) else None


def _numbers(g: Rewriter, value: str, axis: int) -> Expr | None:
    """The first number, if a value counts up along one axis and has no other."""
    t = g.types[value]
    assert isinstance(t, TensorType)
    if t.rank < 2 or any(d is not ONE for n, d in enumerate(t.shape) if n != axis % t.rank):
        return None
    n = g.producer(value)
    while n is not None and n.op in SHAPED:
        n = g.producer(n.inputs[0])
    if n is None or not isinstance(n.attrs, RangeAttrs) or n.attrs.delta is not ONE:
        return None
    return n.attrs.start if n.attrs.count is t.shape[axis] else None
