"""Rotary position embedding: pairs of elements of a head, rotated by position-dependent angles."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.arith.expr import Expr, as_int, cast, const, select
from tilewright.core.node import node
from tilewright.ir.graph.nodes import Attrs
from tilewright.ir.tensor.build import Builder
from tilewright.ir.tensor.nodes import Tensor
from tilewright.ir.types import TensorType
from tilewright.ops.accumulation import widen
from tilewright.ops.op import Op, fail, product_dtype
from tilewright.ops.shape.assumptions import assume, has_elements, same_shape
from tilewright.ops.tensor.positions import IndexedPlace, place_of


@node
class RotaryAttrs(Attrs):
    """Pairs are neighbours with `interleaved`, else elements half of the rotated part apart.

    The input is `[batch, heads, length, size]` with `heads_first`, else `[batch, length, heads,
    size]`. Only the first `size` elements of a head are rotated, all of them where it is 0.
    """

    interleaved: bool = False
    heads_first: bool = True
    size: int = 0


def _rotated(attrs: RotaryAttrs, x: TensorType | Tensor) -> int:
    known = attrs.size or as_int(x.shape[-1])
    if known is None or known % 2:
        raise fail("rotary_embedding", f"the rotated part of {x} must be even and known")
    return known


def _rotary_type(attrs: RotaryAttrs, ins: Sequence[TensorType | None]) -> TensorType:
    x, cos, sin, positions = (*ins, None)[:4]
    assert x is not None
    assert cos is not None
    assert sin is not None
    if x.rank != 4 or cos.rank != (3 if positions is None else 2) or cos.shape != sin.shape:
        raise fail("rotary_embedding", f"{x}, {cos} and {sin} do not fit each other")
    if cos.shape[-1] is not const(_rotated(attrs, x) // 2):
        raise fail("rotary_embedding", f"{cos} does not hold half the size of {x}'s rotated part")
    size, width = const(_rotated(attrs, x)), x.shape[-1]
    if not assume(size <= width, f"rotary_embedding: {size} elements of {width} cannot be rotated"):
        raise fail("rotary_embedding", f"{x} has less than {size} elements a head to rotate")
    if positions is not None and not has_elements("rotary_embedding", cos.shape[0], x.shape):
        raise fail("rotary_embedding", f"{cos} has no positions")
    if positions is not None and positions.rank != 2:
        raise fail("rotary_embedding", f"{positions} has not two axes, batch and position")
    rows = x.shape[0], x.shape[2 if attrs.heads_first else 1]
    table = cos if positions is None else positions
    if not same_shape("rotary_embedding", table.shape[:2], rows):
        raise fail("rotary_embedding", f"{table} has not one row for each position of {x}")
    return TensorType(product_dtype("rotary_embedding", [x, cos, sin]), x.shape)


def _rotary(
    b: Builder, attrs: RotaryAttrs, ins: Sequence[Tensor | None], outs: Sequence[TensorType]
) -> Tensor:
    x, cos, sin, positions = (*ins, None)[:4]
    assert x is not None
    assert cos is not None
    assert sin is not None
    size = _rotated(attrs, x)
    half = const(size // 2)

    def row_of(n: Expr, s: Expr) -> IndexedPlace:
        """Where the tables have the angles of a position."""
        if positions is None:
            return IndexedPlace((n, s), None)
        return place_of((positions.at(n, s),), cos.shape[:1], b.check, wraps=False)

    def element(*i: Expr) -> Expr:
        (row, holds), d = row_of(i[0], i[2 if attrs.heads_first else 1]), i[3]

        def angle(table: Tensor, k: Expr, when: Expr) -> Expr:
            return widen(table.at(*row, k, when=when if holds is None else when & holds))

        inside = d < size
        # Each half of the pairs is a masked load of its own: no index depends on a choice.
        if attrs.interleaved:
            first, second = inside & (d % 2).eq(0), inside & (d % 2).eq(1)
            k, step = [d // 2, d // 2], const(1)
        else:
            first, second = d < half, inside & (d >= half)
            k, step = [d, d - half], half
        ahead = widen(x.at(*i[:3], d + step, when=first)) * angle(sin, k[0], first)
        behind = widen(x.at(*i[:3], d - step, when=second)) * angle(sin, k[1], second)
        straight = angle(cos, k[0], first) + angle(cos, k[1], second)
        value = widen(x.at(*i))
        return cast(x.dtype, select(inside, value * straight - ahead + behind, value))

    return b.compute("y", x.shape, element)


OPS = (
    Op(
        "rotary_embedding",
        _rotary_type,
        "injective",
        RotaryAttrs,
        te=_rotary,
        flops=4,
        checks=lambda attrs, ins: int(len(ins) > 3 and ins[3] is not None),
        doc="Rotates pairs of elements by angles given as cosines and sines a position.",
    ),
)
