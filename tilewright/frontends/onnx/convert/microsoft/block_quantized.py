"""Weights of a few bits, quantized in blocks: MatMulNBits, MatMulBnb4, GatherBlockQuantized."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tilewright.arith.expr import Expr, as_int, const
from tilewright.arith.simplify import simplify
from tilewright.core.dtypes import I64, U8, DType
from tilewright.frontends.onnx.context import Converter, OnnxContext, OnnxNode
from tilewright.frontends.onnx.convert.manipulation import add_reshape
from tilewright.frontends.onnx.convert.quantize import repeated
from tilewright.frontends.onnx.convert.slicing import add_slice
from tilewright.frontends.onnx.node_scope import NodeValue, traced
from tilewright.ops.elementwise.logic import ShiftAttrs
from tilewright.ops.op import normalize_axis
from tilewright.ops.tensor.creation import DimsAttrs
from tilewright.ops.tensor.indexing import GatherAttrs
from tilewright.ops.tensor.manipulation import TransposeAttrs
from tilewright.ops.traced_value import where

DOMAIN = "com.microsoft"
# What the 16 numbers of bitsandbytes' types stand for, relative to a block's largest magnitude.
_FP4 = (0.0, 5.208333333e-03, 0.66666667, 1.0, 0.33333333, 0.5, 0.16666667, 0.25)
_NF4 = (
    -1.0,
    -0.6961928009986877,
    -0.5250730514526367,
    -0.39491748809814453,
    -0.28444138169288635,
    -0.18477343022823334,
    -0.09105003625154495,
    0.0,
    0.07958029955625534,
    0.16093020141124725,
    0.24611230194568634,
    0.33791524171829224,
    0.44070982933044434,
    0.5626170039176941,
    0.7229568362236023,
    1.0,
)
BNB4 = ((*_FP4, *(-v for v in _FP4)), _NF4)


def matmul_nbits(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """A product with weights of a few bits, several in a byte, with a scale a block of them."""
    bits, block = n.int_attr("bits", 4), n.int_attr("block_size")
    columns, depth = n.int_attr("N"), n.int_attr("K")
    if bits not in (2, 4, 8):
        raise n.unsupported(f"weights of {bits} bits", "2, 4 or 8")
    if n.has_input(4):
        raise n.unsupported("weights in another order (g_idx)", "leave it out")
    x, blocks = n.required(0), -(-depth // block)
    dtype = c.type(x).dtype
    w = traced(c, n, _unpacked(c, n, n.required(1), bits, (columns, blocks, block)))
    w = w.cast(dtype) - _zero_points(c, n, bits, columns, blocks)
    scale = add_reshape(c, n, n.required(2), tuple(map(const, (columns, blocks, 1))))
    w = w * traced(c, n, scale).cast(dtype)
    rows = add_reshape(c, n, w.name, (const(columns), const(blocks * block)))
    rows = add_slice(c, rows, {1: (const(0), const(depth), 1)}, "weights")
    transposed = c.add(n, "transpose", rows, attrs=TransposeAttrs((1, 0)))
    y = traced(c, n, c.add(n, "matmul", x, transposed))
    return ((y + traced(c, n, n.input(5)) if n.has_input(5) else y).name,)


def _digits(c: OnnxContext, n: OnnxNode, x: str, bits: int, high_first: bool = False) -> str:
    """Numbers of `bits` bits, the lowest of a byte first unless it is the other way round."""
    outer, parts = c.type(x).shape, 8 // bits
    column = traced(c, n, add_reshape(c, n, x, (*outer, const(1))))
    shifts = np.arange(parts) * bits
    places = traced(c, n, c.constant(shifts[::-1] if high_first else shifts, U8))
    digits = column.apply("bit_shift", places, attrs=ShiftAttrs(False))
    digits = digits.apply("bitwise_and", (1 << bits) - 1)
    return add_reshape(c, n, digits.name, (*outer[:-1], simplify(outer[-1] * parts)))


def _unpacked(c: OnnxContext, n: OnnxNode, x: str, bits: int, shape: tuple[int, ...]) -> str:
    """Numbers of `bits` bits, without the rest of a row's last byte."""
    outer = c.type(x).shape
    flat = _digits(c, n, x, bits)
    wanted = tuple(map(const, shape))
    if len(wanted) == len(outer):
        flat = add_slice(c, flat, {len(outer) - 1: (const(0), wanted[-1], 1)}, "digits")
    return add_reshape(c, n, flat, wanted)


def _zero_points(c: OnnxContext, n: OnnxNode, bits: int, columns: int, blocks: int) -> NodeValue:
    """One a block of weights: packed like them, as floats, or in the middle of the range."""
    dtype = c.type(n.required(0)).dtype
    if not n.has_input(3):
        return traced(c, n, c.constant(1 << (bits - 1), dtype))
    zeros = n.input(3)
    if not c.type(zeros).dtype.is_float:
        row = -(-blocks * bits // 8)
        zeros = add_reshape(c, n, zeros, (const(columns), const(row)))
        zeros = _unpacked(c, n, zeros, bits, (columns, blocks))
    shaped = add_reshape(c, n, zeros, tuple(map(const, (columns, blocks, 1))))
    return traced(c, n, shaped).cast(dtype)


def matmul_bnb4(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """A product with weights of 4 bits that number values of a table, with a scale a block."""
    kind, block = n.int_attr("quant_type"), n.int_attr("block_size")
    columns, depth = n.int_attr("N"), n.int_attr("K")
    if kind not in (0, 1):
        raise n.unsupported(f"quant_type {kind}", "0 (FP4) or 1 (NF4)")
    n.check_table(columns, depth)
    x, scales = n.required(0), n.required(2)
    dtype, count = c.type(x).dtype, columns * depth
    blocks = -(-count // block) if block > 0 else 0
    packed = c.shape(n, n.required(1), 1)[0]
    if as_int(packed) != -(-count // 2) or as_int(c.shape(n, scales, 1)[0]) != blocks:
        raise n.invalid(f"{packed} bytes and {c.type(scales)} do not fit N, K and block_size")
    digits = c.cast(n, _digits(c, n, n.input(1), 4, high_first=True), I64)
    table = c.constant(np.array(BNB4[kind]), dtype)
    w = traced(c, n, c.add(n, "gather", table, digits, attrs=GatherAttrs(0)))
    w = w * traced(c, n, repeated(c, n, scales, 0, block, w.shape[0]))
    flat = add_slice(c, w.name, {0: (const(0), const(count), 1)}, "weights")
    if not n.int_attr("transB", 1):  # as in a backward pass, where the rows are summed over
        rows = add_reshape(c, n, flat, (const(columns), const(depth)))
        return (c.add(n, "matmul", x, rows),)
    rows = add_reshape(c, n, flat, (const(columns), const(depth)))
    transposed = c.add(n, "transpose", rows, attrs=TransposeAttrs((1, 0)))
    return (c.add(n, "matmul", x, transposed),)


def gather_block_quantized(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """Slices of a quantized table; an index outside of it gives zeros."""
    data, indices, scales = n.required(0), n.required(1), n.required(2)
    rank = c.type(data).rank
    axis = normalize_axis(n.op_type, n.int_attr("gather_axis", 0), rank)
    along = normalize_axis(n.op_type, n.int_attr("quantize_axis", 1), rank)
    block, bits = n.int_attr("block_size", 128), n.int_attr("bits", 4)
    if c.type(data).dtype.is_float or block < 1:
        raise n.unsupported(f"{c.type(data)} in blocks of {block}", "integers in blocks")
    if bits not in (2, 4, 8) or axis == along:
        raise n.invalid(f"bits {bits}, gather_axis {axis}, quantize_axis {along}")
    packed = bits if c.type(data).dtype == U8 else 8
    size, given = c.type(data).shape[axis], traced(c, n, indices).cast(I64)
    inside = given.apply("less", _size(given, size))
    inside = inside.apply("and", _size(given, simplify(-size)).apply("less_or_equal", given))
    place = where(inside, given, given.number(0)).name
    moved = along if along < axis else along - 1 + c.type(indices).rank

    def rows(table: str, unpack: int) -> str:
        found = c.add(n, "gather", table, place, attrs=GatherAttrs(axis))
        return found if unpack == 8 else _digits(c, n, found, unpack)

    dtype = c.type(scales).dtype
    y = traced(c, n, rows(data, packed)).cast(dtype)
    length = y.shape[moved]
    y = y - _offsets(c, n, rows, packed, (moved, block, length), dtype)
    y = y * traced(c, n, repeated(c, n, rows(scales, 8), moved, block, length))
    return (where(_spread(c, n, inside, axis, len(y.shape)), y, y.number(0)).name,)


def _size(like: NodeValue, size: Expr) -> NodeValue:
    return like.called(like.g.add("dims", attrs=DimsAttrs((size,), ())))


def _offsets(
    c: OnnxContext,
    n: OnnxNode,
    rows: Callable[[str, int], str],
    packed: int,
    blocks: tuple[int, int, Expr],
    dtype: DType,
) -> NodeValue:
    """The zero points of the slices: given for blocks, else the middle of what bytes hold."""
    if not n.has_input(3):
        signed = c.type(n.required(0)).dtype != U8
        return traced(c, n, c.constant(0 if signed else 1 << (packed - 1), dtype))
    axis, block, length = blocks
    found = rows(n.input(3), packed)
    return traced(c, n, repeated(c, n, found, axis, block, length)).cast(dtype)


def _spread(c: OnnxContext, n: OnnxNode, x: NodeValue, axis: int, rank: int) -> NodeValue:
    """A value of every index, in a shape that broadcasts against the slices they chose."""
    behind = rank - axis - len(x.shape)
    return x.reshape((*x.shape, *(const(1) for _ in range(behind))))


CONVERTERS: dict[str, Converter] = {
    f"{DOMAIN}::MatMulNBits": matmul_nbits,
    f"{DOMAIN}::MatMulBnb4": matmul_bnb4,
    f"{DOMAIN}::GatherBlockQuantized": gather_block_quantized,
}
