"""Cumulative sums along rows on a GPU: the threads of a row scan it together.

    cumsum(x[M, 1000])   →   cumsum_rows(x) {lanes=64, rows=1, steps=4, width=4}

The lanes of a row are as many as its vectors need if each lane has a few, and more where rows are
few. A thread block has several short rows; a row longer than what a block holds is scanned part by
part.
"""

from __future__ import annotations

from functools import partial
from math import gcd

from tilewright.arith.expr import Expr, as_int, product
from tilewright.arith.simplify import simplify
from tilewright.core.dtypes import DType
from tilewright.ir.graph.nodes import Graph, Node
from tilewright.ops.op import normalize_axis
from tilewright.ops.reduction.cumsum_rows import CumsumRowsAttrs
from tilewright.ops.reduction.cumulative import ScanAttrs
from tilewright.ops.tensor.manipulation import ReshapeAttrs
from tilewright.passes.context import PassContext
from tilewright.passes.rewriter import Rewriter, rewrite_graph
from tilewright.target.calibration.sm_90a import OCCUPANCY
from tilewright.target.gpu import GpuTarget

# The vectors that a lane has at a time: as a rule, and where a block could not hold a row else; the
# most elements of them, which stay in registers.
STEPS, MAX_STEPS, MAX_ELEMENTS = 4, 8, 32
# Threads of a block that has several rows.
THREADS = 256
# A row of unknown length is thought to have so many elements.
USUAL_LENGTH = 1024


def cooperative_cumsum(graph: Graph, context: PassContext) -> Graph:
    """Scan rows by the threads of a GPU together."""
    assert isinstance(context.target, GpuTarget)
    return rewrite_graph(graph, partial(_rule, context.target), of=("cumsum",))


def _rule(target: GpuTarget, g: Rewriter, n: Node) -> str | None:
    attrs, x = n.attrs, g.type(n.inputs[0])
    if not isinstance(attrs, ScanAttrs) or x.dtype.kind not in ("int", "uint", "float"):
        return None
    axis = normalize_axis("cumsum", attrs.axis, x.rank)
    length, rows = x.shape[axis], simplify(product(x.shape[:axis]))
    if any(as_int(size) != 1 for size in x.shape[axis + 1 :]) or as_int(rows * length) == 0:
        return None
    plan = plan_cumsum(rows, length, x.dtype, target, attrs)
    if plan is None:
        return None
    flat = g.reshape(n.inputs[0], (rows, length))
    return g.add("reshape", g.add("cumsum_rows", flat, attrs=plan), attrs=ReshapeAttrs(x.shape))


def plan_cumsum(
    rows: Expr, length: Expr, dtype: DType, target: GpuTarget, scan: ScanAttrs
) -> CumsumRowsAttrs | None:
    """How to scan rows, `None` for those of one element."""
    known = as_int(length)
    size = USUAL_LENGTH if known is None else known
    if size < 2:
        return None
    width = 1 if known is None else min(gcd(target.lanes(dtype.bits), size), _power(size) // 2)
    vectors = -(-size // width)
    count = as_int(rows) or 1
    lanes = max(2, min(_power(-(-vectors // STEPS)), target.threads_per_block))
    busy = target.sm_count * OCCUPANCY.rowwise_threads
    while lanes < min(_power(vectors), target.threads_per_block) and count * lanes < busy:
        lanes *= 2
    steps = min(-(-vectors // lanes), MAX_STEPS, max(1, MAX_ELEMENTS // width))
    together = max(1, THREADS // lanes) if lanes <= target.warp_size else 1
    while together > 1 and -(-count // together) < 2 * target.sm_count:
        together //= 2
    return CumsumRowsAttrs(lanes, together, steps, width, scan.exclusive, scan.reverse)


def _power(n: int) -> int:
    return 1 << max(0, n - 1).bit_length()
