"""Pack constants of 4 and 2 bits; they are unpacked where they are read.

%d = cast(%w) {to=f32}              w: int4[64, 32] = const
→
%0 = bit_shift(%p, 4)               p: u8[64, 16] = const
%1 = cast(cast(%p) {to=int4}) {to=f32}
%2 = cast(cast(%0) {to=int4}) {to=f32}
%d = concat(%1, %2) {axis=1}

A row is split into as many parts as there are elements in a byte, and a byte holds one element of
each part, so that both bytes and elements are read and written as vectors. Only constants that are
converted as a whole are packed, not those that are gathered from, or returned.
"""

from __future__ import annotations

import numpy as np

from tilewright.core.dtypes import SMALL_INTEGERS, UINT4, DType, from_numpy
from tilewright.ir.graph.nodes import Graph, Node
from tilewright.ops.elementwise.arithmetic import CastAttrs
from tilewright.ops.elementwise.logic import ShiftAttrs
from tilewright.ops.tensor.slicing import ConcatAttrs
from tilewright.passes.context import PassContext
from tilewright.passes.rewriter import Rewriter, rewrite_graph

# Below this a second kernel would cost more than the bytes.
MIN_ELEMENTS = 1 << 12


def pack_subbyte_constants(graph: Graph, context: PassContext) -> Graph:
    """Store constants of 4 and 2 bits packed, and unpack them where they are converted."""
    return rewrite_graph(graph, _pack, ("cast",))


def _pack(g: Rewriter, n: Node) -> str | None:
    data = g.constant_data(n.inputs[0]) if n.op == "cast" else None
    if data is None or data.size < MIN_ELEMENTS:
        return None
    dtype = from_numpy(data.dtype)
    parts = 8 // dtype.bits
    if dtype.bits not in (4, 2) or data.shape[-1] % parts:
        return None
    packed = g.constant(packed_rows(data, dtype.bits))
    converted = [_part(g, n, packed, dtype, k * dtype.bits) for k in range(parts)]
    return g.add("concat", *converted, attrs=ConcatAttrs(data.ndim - 1))


def _part(g: Rewriter, n: Node, packed: str, dtype: DType, shift: int) -> str:
    """The elements whose bits begin at `shift`, converted as the node does it."""
    if shift:
        amount = g.constant(np.array(shift, np.uint8))
        packed = g.add("bit_shift", packed, amount, attrs=ShiftAttrs(left=False))
    integer = dtype if dtype in SMALL_INTEGERS else UINT4
    part = g.add("cast", packed, attrs=CastAttrs(integer))
    if integer != dtype:
        part = g.add("bitcast", part, attrs=CastAttrs(dtype))
    return g.add("cast", part, attrs=n.attrs)


def packed_rows(data: np.ndarray, bits: int) -> np.ndarray:
    """Bytes that hold one element of each part of a row, the first part in the lowest bits."""
    parts = 8 // bits
    codes = np.ascontiguousarray(data).view(np.uint8) & ((1 << bits) - 1)
    columns = codes.reshape(*data.shape[:-1], parts, data.shape[-1] // parts)
    shifts = np.arange(0, 8, bits, dtype=np.uint8)[:, None]
    packed: np.ndarray = np.bitwise_or.reduce(columns << shifts, axis=-2).astype(np.uint8)
    return packed
