"""Operators that give elements another arrangement: reshape, transpose, expand, tile, ..."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from tilewright.arith.expr import Expr, as_int, const, maximum, minimum, product
from tilewright.arith.simplify import simplify
from tilewright.core.dtypes import I64
from tilewright.core.node import node
from tilewright.ir.graph.nodes import Attrs
from tilewright.ir.tensor.build import Builder
from tilewright.ir.tensor.nodes import Tensor
from tilewright.ir.types import Shape, TensorType
from tilewright.ops.elementwise.define import unary_vjp
from tilewright.ops.op import GraphOps, Op, broadcast_index, fail, normalize_axis
from tilewright.ops.shape.assumptions import assume, divides, same_size
from tilewright.ops.traced_value import Value


@node
class ReshapeAttrs(Attrs):
    """The new shape; every entry is known, `-1` is resolved by the front end."""

    shape: tuple[Expr, ...]


@node
class TransposeAttrs(Attrs):
    """Output dimension `i` is input dimension `perm[i]`."""

    perm: tuple[int, ...]


@node
class ExpandAttrs(Attrs):
    """The shape of the result, to which the input broadcasts."""

    shape: tuple[Expr, ...]


@node
class TileAttrs(Attrs):
    """How often each dimension is repeated."""

    repeats: tuple[Expr, ...]


@node
class ReverseAttrs(Attrs):
    """The axes along which the order of elements is reversed."""

    axes: tuple[int, ...]


@node
class BlockAttrs(Attrs):
    """The side of a spatial block; mode `DCR` has the block outside the channels, `CRD` inside."""

    block: int
    mode: str = "DCR"


@node
class TriluAttrs(Attrs):
    """Which triangle of the last two dimensions is kept; diagonal `k` is the first or last kept."""

    upper: bool = True
    k: Expr = const(0)


def static_sizes(dims: Iterable[Expr]) -> tuple[int, ...] | None:
    """The dimensions as integers, `None` if one is symbolic."""
    sizes = [as_int(simplify(d)) for d in dims]
    return None if None in sizes else tuple(s for s in sizes if s is not None)


def flatten(shape: Shape, indices: Sequence[Expr]) -> Expr:
    """The row-major position of `indices` in a tensor of `shape`."""
    flat: Expr = const(0)
    for size, index in zip(shape, indices, strict=True):
        flat = flat * size + index
    return flat


def unflatten(shape: Shape, flat: Expr) -> list[Expr]:
    """The indices of the row-major position `flat` in a tensor of `shape`."""
    indices: list[Expr] = []
    for size in reversed(shape[1:]):
        indices.append(flat % size)
        flat = flat // size
    return [flat, *reversed(indices)] if shape else []


def common_runs(old: Shape, new: Shape) -> list[tuple[slice, slice]]:
    """Cut two shapes of equal size into the shortest runs of equal size, in order.

    [N, 768] and [N, 12, 64] have the runs N = N and 768 = 12 * 64, so that the index into each run
    is a formula over the indices of that run alone.
    """
    runs: list[tuple[slice, slice]] = []
    i = j = 0
    for end_i in range(1, len(old) + 1):
        size = simplify(product(old[i:end_i]))
        for end_j in range(j, len(new) + 1):
            if size is simplify(product(new[j:end_j])) and size is not const(0):
                runs.append((slice(i, end_i), slice(j, end_j)))
                i, j = end_i, end_j
                break
    if runs and i == len(old):  # what is left of the new shape are ones
        runs[-1] = (runs[-1][0], slice(runs[-1][1].start, len(new)))
    else:
        runs.append((slice(i, len(old)), slice(j, len(new))))
    return runs


def _reshape_type(attrs: ReshapeAttrs, ins: Sequence[TensorType]) -> TensorType:
    old, new = ins[0].elements, product(attrs.shape)
    if not assume(old.eq(new), f"reshape: {ins[0]} does not have {new} elements"):
        raise fail("reshape", f"{ins[0]} has {old} elements, the new shape has {new}")
    return TensorType(ins[0].dtype, tuple(simplify(d) for d in attrs.shape))


def _reshape(
    b: Builder, attrs: ReshapeAttrs, ins: Sequence[Tensor], outs: Sequence[TensorType]
) -> Tensor:
    x, shape = ins[0], outs[0].shape

    def element(*i: Expr) -> Expr:
        index: list[Expr] = []
        if const(0) in x.shape:  # no element to compute, and nothing divides by 0
            return x.at(*(0 for _ in x.shape))
        for old, new in common_runs(x.shape, shape):
            index += unflatten(x.shape[old], flatten(shape[new], i[new]))
        return x.at(*(simplify(e) for e in index))

    return b.compute("y", shape, element)


def _reshape_value(attrs: ReshapeAttrs, known: Sequence[np.ndarray]) -> np.ndarray | None:
    shape = static_sizes(attrs.shape)
    return None if shape is None else known[0].reshape(shape)


def _transpose_type(attrs: TransposeAttrs, ins: Sequence[TensorType]) -> TensorType:
    if sorted(attrs.perm) != list(range(ins[0].rank)):
        raise fail("transpose", f"{attrs.perm} does not permute the dimensions of {ins[0]}")
    return TensorType(ins[0].dtype, tuple(ins[0].shape[p] for p in attrs.perm))


def _transpose(
    b: Builder, attrs: TransposeAttrs, ins: Sequence[Tensor], outs: Sequence[TensorType]
) -> Tensor:
    where = [attrs.perm.index(d) for d in range(len(attrs.perm))]
    return b.compute("y", outs[0].shape, lambda *i: ins[0].at(*(i[w] for w in where)))


def _transpose_vjp(
    attrs: TransposeAttrs, ins: Sequence[Value], y: Value, dy: Value
) -> tuple[Value]:
    inverse = tuple(attrs.perm.index(d) for d in range(len(attrs.perm)))
    return (dy.apply("transpose", attrs=TransposeAttrs(inverse)),)


def _expand_type(attrs: ExpandAttrs, ins: Sequence[TensorType]) -> TensorType:
    x, shape = ins[0], tuple(simplify(d) for d in attrs.shape)
    tail = shape[len(shape) - x.rank :] if x.rank <= len(shape) else ()
    if x.rank != len(tail) or any(
        d is not const(1) and same_size("expand", d, s) is None
        for d, s in zip(x.shape, tail, strict=True)
    ):
        raise fail("expand", f"{x} does not broadcast to [{', '.join(map(str, shape))}]")
    return TensorType(x.dtype, shape)


def _expand(
    b: Builder, _: ExpandAttrs, ins: Sequence[Tensor], outs: Sequence[TensorType]
) -> Tensor:
    x = ins[0]
    return b.compute("y", outs[0].shape, lambda *i: x.at(*broadcast_index(x.shape, i)))


def _expand_value(attrs: ExpandAttrs, known: Sequence[np.ndarray]) -> np.ndarray | None:
    shape = static_sizes(attrs.shape)
    return None if shape is None else np.broadcast_to(known[0], shape)


def _tile_type(attrs: TileAttrs, ins: Sequence[TensorType]) -> TensorType:
    if len(attrs.repeats) != ins[0].rank:
        raise fail("tile", f"{len(attrs.repeats)} repeats for {ins[0]}", "give one a dimension")
    dims = zip(ins[0].shape, attrs.repeats, strict=True)
    return TensorType(ins[0].dtype, tuple(simplify(d * r) for d, r in dims))


def _tile(
    b: Builder, attrs: TileAttrs, ins: Sequence[Tensor], outs: Sequence[TensorType]
) -> Tensor:
    x = ins[0]

    def source(i: Expr, size: Expr, repeat: Expr) -> Expr:
        if size is const(1):
            return const(0)
        return i if repeat is const(1) else i % size

    return b.compute("y", outs[0].shape, lambda *i: x.at(*map(source, i, x.shape, attrs.repeats)))


def _tile_value(attrs: TileAttrs, known: Sequence[np.ndarray]) -> np.ndarray | None:
    repeats = static_sizes(attrs.repeats)
    return None if repeats is None else np.tile(known[0], repeats)


def _reverse_type(attrs: ReverseAttrs, ins: Sequence[TensorType]) -> TensorType:
    for axis in attrs.axes:
        normalize_axis("reverse", axis, ins[0].rank)
    return ins[0]


def _reverse(
    b: Builder, attrs: ReverseAttrs, ins: Sequence[Tensor], outs: Sequence[TensorType]
) -> Tensor:
    x = ins[0]
    reversed_axes = {normalize_axis("reverse", a, len(x.shape)) for a in attrs.axes}

    def element(*i: Expr) -> Expr:
        return x.at(*(x.shape[d] - 1 - e if d in reversed_axes else e for d, e in enumerate(i)))

    return b.compute("y", x.shape, element)


def _block_type(
    attrs: BlockAttrs, ins: Sequence[TensorType], op: str, to_space: bool
) -> TensorType:
    x, s = ins[0], attrs.block
    if x.rank != 4 or s < 1 or attrs.mode not in ("DCR", "CRD"):
        raise fail(op, f"{x} with blocks of {s} in mode {attrs.mode!r}; a rank of 4 is needed")
    n, c, h, w = x.shape
    parts = [(c, s * s)] if to_space else [(h, s), (w, s)]
    if not all(divides(op, step, size) for size, step in parts):
        raise fail(op, f"{x} does not divide into blocks of {s}")
    shape = (n, c // (s * s), h * s, w * s) if to_space else (n, c * (s * s), h // s, w // s)
    return TensorType(x.dtype, tuple(simplify(d) for d in shape))


def _rearranged(
    g: GraphOps, x: str, inner: Sequence[Expr | int], perm: Sequence[int], outer: Sequence[Expr]
) -> str:
    """Reshape to `inner`, transpose by `perm`, reshape to `outer`."""
    wide = tuple(simplify(const(0) + d) for d in inner)
    x = g.add("reshape", x, attrs=ReshapeAttrs(wide))
    x = g.add("transpose", x, attrs=TransposeAttrs(tuple(perm)))
    return g.add("reshape", x, attrs=ReshapeAttrs(tuple(simplify(d) for d in outer)))


def _depth_to_space(g: GraphOps, attrs: BlockAttrs, inputs: Sequence[str]) -> str:
    (n, c, h, w), s = g.type(inputs[0]).shape, attrs.block
    depth = c // (s * s)
    inner: dict[str, tuple[Expr | int, ...]] = {
        "DCR": (n, s, s, depth, h, w),
        "CRD": (n, depth, s, s, h, w),
    }
    perm = {"DCR": (0, 3, 4, 1, 5, 2), "CRD": (0, 1, 4, 2, 5, 3)}[attrs.mode]
    return _rearranged(g, inputs[0], inner[attrs.mode], perm, (n, depth, h * s, w * s))


def _space_to_depth(g: GraphOps, attrs: BlockAttrs, inputs: Sequence[str]) -> str:
    (n, c, h, w), s = g.type(inputs[0]).shape, attrs.block
    perm = {"DCR": (0, 3, 5, 1, 2, 4), "CRD": (0, 1, 3, 5, 2, 4)}[attrs.mode]
    inner = (n, c, h // s, s, w // s, s)
    return _rearranged(g, inputs[0], inner, perm, (n, c * (s * s), h // s, w // s))


def _trilu_type(_: TriluAttrs, ins: Sequence[TensorType]) -> TensorType:
    if ins[0].rank < 2:
        raise fail("trilu", f"{ins[0]} has no matrices", "give a rank of 2 or more")
    if len(ins) > 1 and (
        ins[1].dtype != I64 or same_size("trilu", ins[1].elements, const(1)) is None
    ):
        raise fail("trilu", f"the diagonal's number is {ins[1]}", "give one i64 element")
    return ins[0]


def _trilu(
    b: Builder, attrs: TriluAttrs, ins: Sequence[Tensor], outs: Sequence[TensorType]
) -> Tensor:
    x = ins[0]
    k = attrs.k
    if len(ins) > 1:  # beyond the matrix all diagonals are alike, and none overflows
        given = ins[1].at(*(0 for _ in ins[1].shape))
        k = minimum(maximum(given, simplify(-x.shape[-2])), x.shape[-1])

    def element(*i: Expr) -> Expr:
        first, last = i[-2] + k, i[-1]
        return x.at(*i, when=first <= last if attrs.upper else last <= first)

    return b.compute("y", x.shape, element)


OPS = (
    Op(
        "reshape",
        _reshape_type,
        "view",
        ReshapeAttrs,
        te=_reshape,
        propagate=_reshape_value,
        flops=0,
        vjp=unary_vjp(lambda x, y, dy: dy.reshape(x.shape)),
        doc="The same elements in row-major order under another shape.",
    ),
    Op(
        "transpose",
        _transpose_type,
        "injective",
        TransposeAttrs,
        te=_transpose,
        propagate=lambda a, known: np.transpose(known[0], a.perm),
        flops=0,
        vjp=_transpose_vjp,
        doc="The dimensions in another order.",
    ),
    Op(
        "expand",
        _expand_type,
        "injective",
        ExpandAttrs,
        te=_expand,
        propagate=_expand_value,
        flops=0,
        vjp=unary_vjp(lambda x, y, dy: dy),
        doc="The input broadcast to a shape.",
    ),
    Op(
        "tile",
        _tile_type,
        "injective",
        TileAttrs,
        te=_tile,
        propagate=_tile_value,
        flops=0,
        doc="The input repeated along each dimension.",
    ),
    Op(
        "reverse",
        _reverse_type,
        "injective",
        ReverseAttrs,
        te=_reverse,
        propagate=lambda a, known: np.flip(known[0], a.axes),
        flops=0,
        doc="The order of elements reversed along some axes.",
    ),
    Op(
        "depth_to_space",
        lambda a, ins: _block_type(a, ins, "depth_to_space", to_space=True),
        "injective",
        BlockAttrs,
        decompose=_depth_to_space,
        flops=0,
        doc="Channels moved into square blocks of the last two dimensions.",
    ),
    Op(
        "space_to_depth",
        lambda a, ins: _block_type(a, ins, "space_to_depth", to_space=False),
        "injective",
        BlockAttrs,
        decompose=_space_to_depth,
        flops=0,
        doc="Square blocks of the last two dimensions moved into channels.",
    ),
    Op(
        "trilu",
        _trilu_type,
        "injective",
        TriluAttrs,
        te=_trilu,
        flops=0,
        doc="The upper or lower triangle of each matrix, zero elsewhere.",
    ),
)
