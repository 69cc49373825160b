"""Images on another grid."""

from __future__ import annotations

from fractions import Fraction

from tilewright.arith.expr import Expr, as_int, const
from tilewright.frontends.torch.context import AtenCall, Converter, Result, TorchContext
from tilewright.ops.image.resize import ResizeAttrs

_SCALES = {1: ("scales",), 2: ("scales_h", "scales_w"), 3: ("scales_d", "scales_h", "scales_w")}


def _scale(old: Expr, new: Expr, given: float | None) -> tuple[Expr, Expr]:
    """The scale that positions are computed by: as given, or that of the sizes."""
    if given is not None:
        exact = Fraction(given).limit_denominator(1000)
        if float(exact) == given:
            return const(exact.numerator), const(exact.denominator)
    before, after = as_int(old), as_int(new)
    if not before or after is None:
        return (const(1), const(1)) if old is new else (new, old)
    ratio = Fraction(after, before)
    return const(ratio.numerator), const(ratio.denominator)


def upsample(rank: int, mode: str, rounding: str = "floor") -> Converter:
    """The spatial axes resized: by the nearest element, linearly or cubically."""

    def convert(c: TorchContext, n: AtenCall) -> Result:
        x = n.get("self", n.get("input"))
        shape, wanted = c.type(x).shape, n.type.shape[2:]
        given = n.get("scale_factors") or [n.get(name) for name in _SCALES[rank]]
        pairs = zip(shape[2:], wanted, given, strict=True)
        scales = ((const(1), const(1)),) * 2 + tuple(_scale(*p) for p in pairs)
        transform = "asymmetric" if mode == "nearest" else "half_pixel"
        transform = "align_corners" if n.get("align_corners") else transform
        attrs = ResizeAttrs(shape[:2] + wanted, scales, mode, transform, rounding)
        return c.add(n, "resize_nearest" if mode == "nearest" else "resize", x, attrs=attrs)

    return convert


CONVERTERS: dict[str, Converter] = {
    **{f"aten.upsample_nearest{d}d": upsample(d, "nearest") for d in (1, 2, 3)},
    "aten.upsample_linear1d": upsample(1, "linear"),
    "aten.upsample_bilinear2d": upsample(2, "linear"),
    "aten.upsample_trilinear3d": upsample(3, "linear"),
    "aten.upsample_bicubic2d": upsample(2, "cubic"),
}
