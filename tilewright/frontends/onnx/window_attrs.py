"""The attributes of sliding windows that Conv, ConvTranspose and the pools share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.arith.expr import Expr, as_int, ceildiv, const, maximum
from tilewright.arith.simplify import simplify
from tilewright.frontends.onnx.context import OnnxContext, OnnxNode
from tilewright.ir.types import Shape
from tilewright.ops.tensor.padding import PadAttrs

AUTO_PADS = ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER")


@dataclass(frozen=True)
class Window:
    """Strides, padding (before each axis, then after each) and dilations."""

    strides: tuple[int, ...]
    pads: tuple[Expr, ...]
    dilations: tuple[int, ...]

    @property
    def static_pads(self) -> tuple[int, ...] | None:
        """The padding as integers, `None` if it depends on symbolic sizes."""
        sizes = tuple(as_int(p) for p in self.pads)
        return None if any(s is None for s in sizes) else tuple(s for s in sizes if s is not None)


def auto_pad(n: OnnxNode) -> str:
    """How padding is chosen; `NOTSET` means by the attribute `pads`."""
    kind = n.str_attr("auto_pad", "NOTSET")
    if kind not in AUTO_PADS:
        raise n.invalid(f"auto_pad is {kind!r}", f"one of {', '.join(AUTO_PADS)}")
    return kind


def kernel_shape(c: OnnxContext, n: OnnxNode, weights: str) -> Shape:
    """The kernel's size: that of the weights, which the attribute must agree with."""
    found = c.type(weights).shape[2:]
    given = n.ints_attr("kernel_shape", ())
    if given and tuple(const(k) for k in given) != found:
        raise n.invalid(f"kernel_shape {given} is not that of the weights {c.type(weights)}")
    return found


def steps(n: OnnxNode, rank: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Strides and dilations, 1 by default."""
    return n.ints_attr("strides", (1,) * rank), n.ints_attr("dilations", (1,) * rank)


def read_window(n: OnnxNode, sizes: Shape, kernel: Sequence[Expr]) -> Window:
    """The window attributes of a node, given the sizes of the input's spatial axes."""
    rank = len(sizes)
    strides, dilations = steps(n, rank)
    given = n.ints_attr("pads", (0,) * (2 * rank))
    if not len(strides) == len(dilations) == len(kernel) == rank or len(given) != 2 * rank:
        raise n.invalid(f"strides, pads, dilations or kernel do not fit {rank} spatial axes")
    kind = auto_pad(n)
    pads: tuple[Expr, ...] = tuple(const(p) for p in given)
    if kind == "VALID":
        pads = (const(0),) * (2 * rank)
    elif kind != "NOTSET":
        totals = [
            _same_padding(size, (k - 1) * d + 1, s)
            for size, k, d, s in zip(sizes, kernel, dilations, strides, strict=True)
        ]
        pads = split_padding(kind, totals)
    return Window(strides, pads, dilations)


def _same_padding(size: Expr, reach: Expr, stride: int) -> Expr:
    """The padding that gives `ceil(size / stride)` windows."""
    if stride == 1:
        return reach - 1
    return simplify(maximum((ceildiv(size, stride) - 1) * stride + reach - size, 0))


def split_padding(kind: str, totals: Sequence[Expr]) -> tuple[Expr, ...]:
    """Half of each total on both sides; SAME_UPPER puts the odd one behind, SAME_LOWER in front."""
    lesser = [t // 2 for t in totals]
    greater = [t - h for t, h in zip(totals, lesser, strict=True)]
    return (*lesser, *greater) if kind == "SAME_UPPER" else (*greater, *lesser)


def with_explicit_padding(
    c: OnnxContext, n: OnnxNode, x: str, window: Window
) -> tuple[str, Window]:
    """The input and the window with constant padding: symbolic padding becomes an operator."""
    if window.static_pads is not None:
        return x, window
    rank, zero = len(window.strides), const(0)
    before, after = window.pads[:rank], window.pads[rank:]
    attrs = PadAttrs((zero, zero, *before), (zero, zero, *after))
    none = Window(window.strides, (zero,) * (2 * rank), window.dilations)
    return c.add(n, "pad", x, attrs=attrs), none
