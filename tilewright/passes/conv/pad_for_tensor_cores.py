"""Pad reduction dimensions with zeros to the 16 bytes that tensor cores load at a time (GPU).

    conv[channels_last](x[N, H, W, 3], w)   →   conv[channels_last](pad(x)[N, H, W, 8], padded w)
    conv(sqrt(x)[N, 129, W], w)             →   conv(pad(sqrt(x))[N, 144, W], padded w)
    matmul(concat(x[M, 64], y[M, 351]), w)  →   matmul(concat(x, pad(y)[M, 352]), padded w)

Then all loads are vectors, each within one pixel. The additional products cost less than scalar
loads. The producer of the image, or of one part of a concatenation, writes it padded; for sums of
many terms in 16 or 8 bits it is copied, if need be. In f32 a few additional channels make
reductions that can be split. In 16 bits, pixels of whole sectors (16 channels) come faster: those
that are padded get as many, and others where that saves more than a copy takes.
"""

from __future__ import annotations

from functools import partial
from math import prod

import numpy as np

from tilewright.arith.expr import as_int, const
from tilewright.ir.graph.nodes import Graph, Node
from tilewright.ir.types import TYPICAL_SIZE, Shape
from tilewright.ops.conv.conv import ConvAttrs, ConvTransposeAttrs
from tilewright.ops.elementwise.define import is_pointwise
from tilewright.ops.registry import get_op
from tilewright.ops.tensor.padding import PadAttrs
from tilewright.ops.tensor.slicing import ConcatAttrs
from tilewright.passes.context import PassContext
from tilewright.passes.rewriter import Rewriter, rewrite_graph
from tilewright.target.gpu import SECTOR_BYTES, VECTOR_BYTES, GpuTarget

# Terms of a sum that are worth an instruction on matrices.
MIN_TERMS = 32
# Terms of a sum, and filters that share them, which are worth a copy of the image.
MIN_COPIED_TERMS, MIN_COPIED_FILTERS = 128, 16
# What channels become a multiple of, where they are more than a vector, and how many of them may be
# added to one that is there: by bits of an element.
MULTIPLES = {8: (16, 1 / 4), 16: (8, 1 / 4), 32: (16, 1 / 8)}

# What pixels of whole sectors save of a convolution, as a part of its time at peak rate (measured).
SECTOR_SHARE = 0.3


def pad_for_tensor_cores(graph: Graph, context: PassContext) -> Graph:
    """Give the first convolution of an image, in 16 or 8 bits, as many channels as a vector has.

    Others, and a product of what is joined, get as many more as are whole vectors, where somebody
    computes them that can write zeros as well.
    """
    target = context.target
    assert isinstance(target, GpuTarget)
    return rewrite_graph(graph, partial(_rule, target), of=("conv", "conv_i32acc", "matmul"))


def _rule(target: GpuTarget, g: Rewriter, n: Node) -> str | None:
    return _joined(g, n) if n.op == "matmul" else _image(target, g, n)


def _joined(g: Rewriter, n: Node) -> str | None:
    """A product with a constant of what is joined of parts, one of which can be written padded."""
    join, weights = g.producer(n.inputs[0]), g.constant_data(n.inputs[1])
    if join is None or not isinstance(join.attrs, ConcatAttrs) or weights is None:
        return None
    last = g.type(n.inputs[0]).rank - 1
    if join.attrs.axis not in (-1, last) or weights.ndim != 2 or g.use_count(n.inputs[0]) != 1:
        return None
    missing = -len(weights) % (VECTOR_BYTES // g.type(n.inputs[0]).dtype.bytes)
    found = next((i for i, x in enumerate(join.inputs) if _writes_anywhere(g, x)), None)
    sizes = [as_int(g.type(x).shape[-1]) for x in join.inputs]
    if not missing or found is None or len(weights) < MIN_TERMS:
        return None
    before = [size for size in sizes[: found + 1] if size is not None]
    if len(before) <= found:
        return None
    none = (const(0),) * last
    attrs = PadAttrs((*none, const(0)), (*none, const(missing)))
    parts = list(join.inputs)
    parts[found] = g.add("pad", parts[found], attrs=attrs)
    zeros = np.zeros((missing, weights.shape[1]), weights.dtype)
    padded = np.insert(weights, sum(before), zeros, axis=0)
    joined = g.add("concat", *parts, attrs=join.attrs)
    return g.add("matmul", joined, g.constant(padded), attrs=n.attrs)


def _writes_anywhere(g: Rewriter, value: str) -> bool:
    """Whether who makes a value computes its elements one by one, and for no one else."""
    made = g.producer(value)
    return made is not None and get_op(made.op).kind == "injective" and g.use_count(value) == 1


def _image(target: GpuTarget, g: Rewriter, n: Node) -> str | None:
    attrs = n.attrs
    if not isinstance(attrs, ConvAttrs) or isinstance(attrs, ConvTransposeAttrs):
        return None
    x, weights = g.type(n.inputs[0]), g.constant_data(n.inputs[1])
    if attrs.groups != 1 or weights is None or weights[0].size < MIN_TERMS:
        return None
    axis = x.rank - 1 if attrs.layout == "channels_last" else 1
    missing = _missing(target, g, n, weights, as_int(x.shape[axis]), attrs)
    if not missing:
        return None
    before, after = [const(0)] * x.rank, [const(0)] * x.rank
    after[axis] = const(missing)
    image = g.add("pad", n.inputs[0], attrs=PadAttrs(tuple(before), tuple(after)))
    width = [(0, missing if axis == 1 else 0) for axis in range(weights.ndim)]
    return g.add(n.op, image, g.constant(np.pad(weights, width)), attrs=attrs)


def _missing(
    target: GpuTarget,
    g: Rewriter,
    n: Node,
    weights: np.ndarray,
    channels: int | None,
    attrs: ConvAttrs,
) -> int:
    """How many channels a convolution is to get besides those that it has."""
    x = g.type(n.inputs[0])
    if not channels or x.dtype.bits not in MULTIPLES:
        return 0
    vector, last = VECTOR_BYTES // x.dtype.bytes, attrs.layout == "channels_last"
    if channels < vector:
        fits = x.dtype.bits <= 16 and last and not _is_vectorized(x.shape, weights, attrs, vector)
        return vector - channels if fits else 0
    multiple, most = MULTIPLES[x.dtype.bits]
    missing = -channels % multiple
    sectors = -channels % (SECTOR_BYTES // x.dtype.bytes)
    if x.dtype.bits == 16 and last and sectors <= most * channels:
        missing = sectors if missing or _is_worth_sectors(target, n, weights, attrs) else 0
    pays = missing <= most * channels and (last or x.dtype.bits == 32)
    free = _writes_anywhere(g, n.inputs[0]) and _is_apart(g, n.inputs[0])
    worth = x.dtype.bits <= 16 and last and _is_worth_a_copy(weights)
    return missing if missing and pays and (free or worth) else 0


def _is_worth_a_copy(weights: np.ndarray) -> bool:
    return weights[0].size >= MIN_COPIED_TERMS and len(weights) >= MIN_COPIED_FILTERS


def _is_worth_sectors(target: GpuTarget, n: Node, weights: np.ndarray, attrs: ConvAttrs) -> bool:
    """Whether pixels of whole sectors save more time of a convolution than a copy takes.

    With steps of two pixels all of a window begin with a sector.
    """
    if attrs.strides[-1] % 2 == 0 or not _is_worth_a_copy(weights):
        return False
    pixels = prod(as_int(size) or TYPICAL_SIZE for size in n.type.shape[:-1])
    products = 2 * pixels * weights.size / target.mma_rate
    copied = 2 * pixels * weights.shape[1] * n.type.dtype.bytes / target.memory_rate
    return bool(SECTOR_SHARE * products > copied)


def _is_apart(g: Rewriter, value: str) -> bool:
    """Whether who makes a value is no formula behind a sum, whose kernel would not pad."""
    made = g.producer(value)
    if made is None or g.use_count(value) > 1:
        return True
    row = get_op(made.op)
    if row.kind != "injective" or not is_pointwise(row):
        return row.kind in ("injective", "view")
    return all(_is_apart(g, i) for i in made.inputs if i)


def _is_vectorized(shape: Shape, weights: np.ndarray, attrs: ConvAttrs, vector: int) -> bool:
    """Whether a row of each window is whole vectors as it lies, pixel after pixel."""
    channels = weights.shape[1]
    runs = (weights.shape[-1], attrs.strides[-1], attrs.pads[attrs.rank - 1])
    rows = [as_int(shape[-2]) or 1] if attrs.rank > 1 else []
    return attrs.dilations[-1] == 1 and all(n * channels % vector == 0 for n in (*runs, *rows))
