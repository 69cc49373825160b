"""Long cumulative sums of which there are few, on a GPU: block by block.

    cumsum(x[M, 1000, N])   →   y = cumsum(x as [M, 32, 32, N])    each block by itself
                                t = cumsum(y[:, :, 31])            what the blocks before add up to
                                y[:, 1:] + t[:, :-1]

Along rows a thread block scans a block, elsewhere a thread does. The sums of blocks are scanned in
the same way where they are many. Narrow floats are added up in f32, and rounded once.
"""

from __future__ import annotations

from functools import partial
from math import prod

from tilewright.arith.expr import const
from tilewright.core.dtypes import F32
from tilewright.core.node import node
from tilewright.ir.graph.nodes import Graph, Node
from tilewright.ir.types import Shape
from tilewright.ops.elementwise.arithmetic import CastAttrs
from tilewright.ops.op import normalize_axis
from tilewright.ops.reduction.cumulative import ScanAttrs
from tilewright.ops.tensor.manipulation import ReshapeAttrs
from tilewright.ops.tensor.padding import PadAttrs
from tilewright.ops.tensor.slicing import SliceAttrs
from tilewright.passes.context import PassContext
from tilewright.passes.rewriter import Rewriter, rewrite_graph
from tilewright.target.gpu import GpuTarget


@node
class Blocks:
    """The terms of a block, and the scans that keep an SM busy without being cut.

    A sum is cut if it has `MIN_BLOCKS` blocks: their sums cost two more passes.
    """

    terms: int
    scans_per_sm: int


MIN_BLOCKS = 4
# Along rows, whose threads lie side by side; along other axes a thread has a scan.
ROWS, COLUMNS = Blocks(16384, 1), Blocks(32, 128)


def block_scans(graph: Graph, context: PassContext) -> Graph:
    """Cut long cumulative sums into blocks."""
    assert isinstance(context.target, GpuTarget)
    return rewrite_graph(graph, partial(_rule, context.target.sm_count), of=("cumsum",))


def _rule(sm_count: int, g: Rewriter, n: Node) -> str | None:
    attrs, sizes = n.attrs, n.type.static_shape
    if n.op != "cumsum" or not isinstance(attrs, ScanAttrs) or sizes is None:
        return None
    axis = normalize_axis("cumsum", attrs.axis, len(sizes))
    blocks = ROWS if prod(sizes[axis + 1 :]) == 1 else COLUMNS
    if attrs.exclusive or attrs.reverse or sizes[axis] < MIN_BLOCKS * blocks.terms:
        return None
    if prod(sizes) // sizes[axis] >= sm_count * blocks.scans_per_sm:
        return None
    narrow = n.type.dtype.is_float and n.type.dtype.bits < F32.bits
    x = g.add("cast", n.inputs[0], attrs=CastAttrs(F32)) if narrow else n.inputs[0]
    y = _scan(g, x, sizes, axis, blocks.terms)
    return g.add("cast", y, attrs=CastAttrs(n.type.dtype)) if narrow else y


def _scan(g: Rewriter, x: str, sizes: tuple[int, ...], axis: int, terms: int) -> str:
    """The cumulative sum of a value of some sizes along an axis."""
    if sizes[axis] < MIN_BLOCKS * terms:
        return g.add("cumsum", x, attrs=ScanAttrs(axis))
    before, length, after = sizes[:axis], sizes[axis], sizes[axis + 1 :]
    blocks = -(-length // terms)
    whole = _padded(g, x, axis, 0, blocks * terms - length)
    cut = g.add("reshape", whole, attrs=ReshapeAttrs(_shape(*before, blocks, terms, *after)))
    inner = g.add("cumsum", cut, attrs=ScanAttrs(axis + 1))
    ends = _part(g, inner, axis + 1, terms - 1, terms)
    totals = g.add("reshape", ends, attrs=ReshapeAttrs(_shape(*before, blocks, *after)))
    sums = _scan(g, totals, (*before, blocks, *after), axis, terms)
    earlier = _padded(g, _part(g, sums, axis, 0, blocks - 1), axis, 1, 0)
    offset = g.add("reshape", earlier, attrs=ReshapeAttrs(_shape(*before, blocks, 1, *after)))
    joined = ReshapeAttrs(_shape(*before, blocks * terms, *after))
    y = g.add("reshape", g.add("add", inner, offset), attrs=joined)
    return y if blocks * terms == length else _part(g, y, axis, 0, length)


def _shape(*sizes: int) -> Shape:
    return tuple(const(size) for size in sizes)


def _padded(g: Rewriter, x: str, axis: int, front: int, back: int) -> str:
    """A value with zeros in front of an axis, and behind it."""
    if not front and not back:
        return x
    rank = g.type(x).rank
    before, after = (
        tuple(const(n if d == axis else 0) for d in range(rank)) for n in (front, back)
    )
    return g.add("pad", x, attrs=PadAttrs(before, after))


def _part(g: Rewriter, x: str, axis: int, start: int, stop: int) -> str:
    """Some elements along an axis."""
    shape = g.type(x).shape
    starts = tuple(const(start if d == axis else 0) for d in range(len(shape)))
    stops = tuple(const(stop) if d == axis else size for d, size in enumerate(shape))
    return g.add("slice", x, attrs=SliceAttrs(starts, stops, (1,) * len(shape), inside=True))
