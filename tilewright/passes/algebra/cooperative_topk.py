"""TopK of a few elements on a GPU: the threads of a row select them together.

    topk(x[M, 5000]) {k=8}     →   topk_rows(x) {lanes=512, rows=1, steps=3, width=4}

Rows that are too long for the registers of a thread block are cut: the best of all parts, in the
order of the parts, have the best of the whole among them.

    topk(x[M, 100000]) {k=8}   →   v, i = topk_rows(x) {part=25000}
                                   y, j = topk_rows(v as [M, 32]);  i[j]
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from math import gcd

from tilewright.arith.expr import Expr, as_int, const, product
from tilewright.arith.simplify import simplify
from tilewright.core.dtypes import DType
from tilewright.ir.graph.nodes import Graph, Node
from tilewright.ops.op import normalize_axis
from tilewright.ops.tensor.indexing import GatherAttrs
from tilewright.ops.tensor.manipulation import TransposeAttrs
from tilewright.ops.tensor.sort_keys import SortKeys
from tilewright.ops.tensor.topk import TopKAttrs
from tilewright.ops.tensor.topk_rows import TopKRowsAttrs
from tilewright.passes.context import PassContext
from tilewright.passes.rewriter import Rewriter, rewrite_graph
from tilewright.target.calibration.sm_90a import OCCUPANCY
from tilewright.target.gpu import GpuTarget

# Candidates are compared with one another: more than so many elements are sorted.
MAX_COUNT = 128
# The elements of a lane as a rule, and the words that stay in its registers at most.
ELEMENTS, MAX_WORDS = 8, 16
# Threads of a block that has several rows.
THREADS = 256


def cooperative_topk(graph: Graph, context: PassContext) -> Graph:
    """Select a few elements of each row by the threads of a GPU together."""
    assert isinstance(context.target, GpuTarget)
    return rewrite_graph(graph, partial(_rule, context.target), of=("topk",))


def _rule(target: GpuTarget, g: Rewriter, n: Node) -> tuple[str, str] | None:
    attrs, x = n.attrs, g.type(n.inputs[0])
    if not isinstance(attrs, TopKAttrs) or x.dtype.kind not in ("int", "uint", "float"):
        return None
    axis = normalize_axis("topk", attrs.axis, x.rank)
    length, k = as_int(x.shape[axis]), as_int(simplify(attrs.k))
    if not k or not length or k > MAX_COUNT or as_int(x.elements) == 0:
        return None
    order = (*(d for d in range(x.rank) if d != axis), axis)
    last = axis == x.rank - 1
    moved = n.inputs[0] if last else g.add("transpose", n.inputs[0], attrs=TransposeAttrs(order))
    others = g.type(moved).shape[:-1]
    rows = simplify(product(others))
    found = _Rows(g, target, rows, attrs.largest).best(g.reshape(moved, (rows, const(length))), k)
    shaped = [g.reshape(y, (*others, const(k))) for y in found]
    if not last:
        back = TransposeAttrs(tuple(order.index(d) for d in range(x.rank)))
        shaped = [g.add("transpose", y, attrs=back) for y in shaped]
    return shaped[0], shaped[1]


class _Rows:
    """Selects elements of some rows."""

    def __init__(self, g: Rewriter, target: GpuTarget, rows: Expr, largest: bool) -> None:
        self.g, self.target, self.rows, self.largest = g, target, rows, largest

    def best(self, x: str, k: int) -> tuple[str, str]:
        """The best `k` elements of the rows of a matrix, and their indices."""
        g, target = self.g, self.target
        dtype, length = g.type(x).dtype, as_int(g.type(x).shape[1])
        assert length is not None
        most = held_elements(target, dtype, self.largest)
        if length <= most:
            attrs = plan_topk(k, self.rows, length, dtype, self.largest, target)
            values, indices = g.add_many("topk_rows", x, attrs=attrs)
            return values, indices
        part = part_length(k, length, most, target.lanes(dtype.bits))
        together = simplify(self.rows * -(-length // part))
        attrs = plan_topk(k, together, part, dtype, self.largest, target)
        width = gcd(attrs.width, length)
        steps = attrs.steps * attrs.width // width
        attrs = replace(attrs, part=part, width=width, steps=steps)
        found = g.add_many("topk_rows", x, attrs=attrs)
        wide = (self.rows, simplify(g.type(found[0]).elements // self.rows))
        values, indices = (g.reshape(y, wide) for y in found)
        y, place = self.best(values, k)
        return y, g.add("gather_elements", indices, place, attrs=GatherAttrs(1, "clip"))


def held_elements(target: GpuTarget, dtype: DType, largest: bool) -> int:
    """The elements of the longest row that the registers of a thread block hold."""
    words = SortKeys(dtype, largest).dtype.bits // 32
    return target.threads_per_block * MAX_WORDS // words


def part_length(k: int, length: int, most: int, vector: int) -> int:
    """The length of equal parts, in vectors; the last one is shorter, but has `k` elements."""
    part = -(-length // -(-length // most))
    part = -(-part // vector) * vector
    while part < most and length - (length - 1) // part * part < k:
        part += vector
    return part


def plan_topk(
    k: int, rows: Expr, length: int, dtype: DType, largest: bool, target: GpuTarget
) -> TopKRowsAttrs:
    """How to select elements of rows that fit into the registers of a block."""
    count = as_int(rows) or 1
    words = SortKeys(dtype, largest).dtype.bits // 32
    lanes = max(target.warp_size, _power(-(-length // ELEMENTS)))
    # Each lane has a maximum, of which there should be more than are wanted.
    lanes = max(lanes, min(_power(2 * k), _power(length)))
    if count * lanes >= target.sm_count * OCCUPANCY.rowwise_threads:
        enough = max(target.warp_size, min(_power(2 * k), _power(length)))
        lanes = max(enough, lanes // 2)
    lanes = min(lanes, target.threads_per_block)
    width = gcd(target.lanes(dtype.bits), length)
    while width > 1 and length // width < lanes:
        width //= 2
    steps = -(-length // (width * lanes))
    while steps * width * words > MAX_WORDS and lanes < target.threads_per_block:
        lanes *= 2
        steps = -(-length // (width * lanes))
    together = max(1, THREADS // lanes) if lanes <= target.warp_size else 1
    while together > 1 and -(-count // together) < 2 * target.sm_count:
        together //= 2
    return TopKRowsAttrs(k, lanes, together, steps, width, largest)


def _power(n: int) -> int:
    return 1 << max(0, n - 1).bit_length()
