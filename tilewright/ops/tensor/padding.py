"""Padding: elements added around a tensor, or cut away where the amount is negative."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tilewright.arith.expr import TRUE, Expr, as_int, const, maximum, minimum, select
from tilewright.arith.simplify import simplify
from tilewright.core.node import node
from tilewright.ir.graph.nodes import Attrs
from tilewright.ir.tensor.build import Builder
from tilewright.ir.tensor.nodes import Tensor
from tilewright.ir.types import TensorType
from tilewright.ops.op import Op, fail
from tilewright.ops.shape.assumptions import has_elements

MODES = ("constant", "edge", "reflect", "wrap")


@node
class PadAttrs(Attrs):
    """How many elements to add in front of and behind each dimension, and which.

    Mode `constant` adds `value`, or the second operand where there is one; `edge` repeats the
    outermost element, `reflect` mirrors at it, `wrap` continues from the other end.
    """

    before: tuple[Expr, ...]
    after: tuple[Expr, ...]
    mode: str = "constant"
    value: float | int = 0


def _pad_type(attrs: PadAttrs, ins: Sequence[TensorType]) -> TensorType:
    x = ins[0]
    if not len(attrs.before) == len(attrs.after) == x.rank:
        raise fail("pad", f"{x} needs one amount before and after each dimension")
    if attrs.mode not in MODES:
        raise fail("pad", f"no mode {attrs.mode!r}", f"use one of {', '.join(MODES)}")
    if len(ins) > 1 and (ins[1].dtype != x.dtype or ins[1].elements is not const(1)):
        raise fail("pad", f"{x} cannot be padded with {ins[1]}", f"give one {x.dtype} element")
    shape = [simplify(d + p + q) for d, p, q in _dims(attrs, x)]
    for (old, _, _), new in zip(_dims(attrs, x), shape, strict=True):
        if (as_int(new) or 0) < 0:
            raise fail("pad", f"more than all of dimension {old} of {x} would be cut away")
        if attrs.mode != "constant" and not has_elements("pad", old, shape):
            raise fail("pad", f"{x} has no elements to repeat", "use mode constant")
    return TensorType(x.dtype, tuple(shape))


def _dims(attrs: PadAttrs, x: TensorType | Tensor) -> list[tuple[Expr, Expr, Expr]]:
    return list(zip(x.shape, attrs.before, attrs.after, strict=True))


def _reflected(i: Expr, size: Expr, before: Expr, after: Expr) -> Expr:
    n, p, q = as_int(size), as_int(before), as_int(after)
    last = size - 1
    if n is not None and p is not None and q is not None and max(p, q) < n:  # one reflection
        i = i if p <= 0 else maximum(i, -i)
        return i if q <= 0 else minimum(i, last * 2 - i)
    # Longer pads go to and fro: the positions repeat after twice the way from end to end.
    i = i % maximum(last * 2, 1)
    return minimum(i, last * 2 - i)


# Where the element at a position (which may be negative) along one dimension is found.
_SOURCES: dict[str, Callable[[Expr, Expr, Expr, Expr], Expr]] = {
    "edge": lambda i, size, before, after: minimum(maximum(i, 0), size - 1),
    "reflect": _reflected,
    "wrap": lambda i, size, before, after: i % size,
}


def _needs(amount: Expr) -> bool:
    """Whether elements are, or may be, added."""
    known = as_int(amount)
    return known is None or known > 0


def _inside(i: Expr, size: Expr, before: Expr, after: Expr) -> Expr:
    above = const(0) <= i if _needs(before) else TRUE
    return above & (i < size) if _needs(after) else above


def _pad(b: Builder, attrs: PadAttrs, ins: Sequence[Tensor], outs: Sequence[TensorType]) -> Tensor:
    x = ins[0]

    def element(*i: Expr) -> Expr:
        dims = _dims(attrs, x)
        index = [simplify(e - p) for e, (_, p, _) in zip(i, dims, strict=True)]
        if attrs.mode == "constant":
            return constant(index, dims)
        source = _SOURCES[attrs.mode]
        return x.at(
            *(
                simplify(source(e, *dim)) if _needs(dim[1]) or _needs(dim[2]) else e
                for e, dim in zip(index, dims, strict=True)
            )
        )

    def constant(index: Sequence[Expr], dims: Sequence[tuple[Expr, Expr, Expr]]) -> Expr:
        inside: Expr = TRUE
        for e, dim in zip(index, dims, strict=True):
            inside = inside & _inside(e, *dim)
        value = x.at(*index, when=None if inside is TRUE else inside)
        if len(ins) > 1:
            return select(inside, value, ins[1].at(*(0 for _ in ins[1].shape)))
        # A masked load is zero outside by itself.
        return select(inside, value, const(attrs.value, x.dtype)) if attrs.value else value

    return b.compute("y", outs[0].shape, element)


OPS = (
    Op(
        "pad",
        _pad_type,
        "injective",
        PadAttrs,
        te=_pad,
        flops=0,
        doc="Elements added before and after each dimension.",
    ),
)
