"""Products with one-hot rows become gathers.

    matmul(cast(i == [0, 1, ..., K - 1]), w)   →   gather([w; 0], where(0 <= i & i < K, i, K))

A row that is one in one place and zero elsewhere picks a row of the constant `w`; one that is zero
everywhere, for an index outside, picks the row of zeros. Exactly the same numbers, where `w` is
finite: zeros times the rows not picked are zeros.
"""

from __future__ import annotations

import numpy as np

from tilewright.arith.expr import const
from tilewright.ir.graph.nodes import Graph, Node
from tilewright.ir.types import Shape
from tilewright.ops.tensor.indexing import GatherAttrs
from tilewright.ops.tensor.manipulation import ReshapeAttrs
from tilewright.passes.context import PassContext
from tilewright.passes.rewriter import Rewriter, rewrite_graph

ONE = const(1)


def one_hot_matmul_to_gather(graph: Graph, context: PassContext) -> Graph:
    """Read rows of a matrix instead of multiplying by ones and zeros."""
    return rewrite_graph(graph, _rule, of=("equal",))


def _rule(g: Rewriter, n: Node) -> str | None:
    if n.op != "matmul":
        return None
    rows = g.constant_data(n.inputs[1])
    indices = None if rows is None or rows.ndim != 2 else _indices(g, n.inputs[0], len(rows))
    if rows is None or indices is None or not np.isfinite(rows).all():
        return None
    wanted: Shape = n.type.shape[:-1]
    places = g.add("reshape", indices, attrs=ReshapeAttrs(wanted))
    dtype = g.type(places).dtype.numpy
    none, count = g.constant(np.zeros((), dtype)), g.constant(np.array(len(rows), dtype))
    inside = g.add("and", g.add("less_or_equal", none, places), g.add("less", places, count))
    picked = g.add("where", inside, places, count)
    # Zero is added so that -0 becomes what it is as a sum.
    table = np.concatenate([rows + 0, np.zeros((1, rows.shape[1]), rows.dtype)])
    return g.add("gather", g.constant(table), picked, attrs=GatherAttrs(0, "clip"))


def _indices(g: Rewriter, value: str, count: int) -> str | None:
    """The integers, one a row, that a value compares with 0, 1, ... `count` - 1."""
    cast = g.producer(value)
    compared = None if cast is None or cast.op != "cast" else g.producer(cast.inputs[0])
    if compared is None or compared.op != "equal":
        return None
    for given, other in (compared.inputs, compared.inputs[::-1]):
        numbers = g.constant_data(other)
        if numbers is None or not _counts(numbers, count):
            continue
        shape = g.type(given).shape
        whole = len(shape) == compared.type.rank and shape[:-1] == compared.type.shape[:-1]
        if whole and shape[-1] is ONE and g.type(given).dtype.is_integer:
            return given
    return None


def _counts(numbers: np.ndarray, count: int) -> bool:
    """Whether an array is 0, 1, ... `count` - 1 along its last axis, and has no other."""
    return numbers.size == count and np.array_equal(numbers.reshape(-1), np.arange(count))
