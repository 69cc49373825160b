"""Images on another grid."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from tilewright.arith.expr import Expr, as_int, const
from tilewright.frontends.torch.context import AtenCall, Converter, Result, TorchContext
from tilewright.frontends.torch.convert.pool import along
from tilewright.ops.accumulation import accumulator
from tilewright.ops.image.grid_sample import PADDINGS, GridSampleAttrs
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


def _triangle(x: np.ndarray) -> np.ndarray:
    return np.asarray(np.maximum(1 - np.abs(x), 0))


def _cubic(x: np.ndarray, a: float = -0.5) -> np.ndarray:
    """Keys' kernel, with the slope that images are commonly made smaller by."""
    x = np.abs(x)
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = (((x - 5) * x + 8) * x - 4) * a
    return np.asarray(np.where(x < 1, near, np.where(x < 2, far, 0)))


def _smooth_weights(
    old: int, new: int, scale: np.floating, kernel: Callable[[np.ndarray], np.ndarray], reach: int
) -> np.ndarray:
    """Each column the weights of one sample; the kernel is as wide as samples are apart.

    They are computed in the type of the scale, f32 for images of f32: as eager does.
    """
    one, half = scale.dtype.type(1), scale.dtype.type(0.5)
    wide = max(scale, one)
    weights = np.zeros((old, new), scale.dtype)
    for i in range(new):
        centre = scale * (i + half)
        first = max(int(centre - reach * wide + half), 0)
        stop = min(int(centre + reach * wide + half), old)
        taken = kernel((np.arange(first, stop, dtype=scale.dtype) - centre + half) * (one / wide))
        weights[first:stop, i] = taken / taken.sum()
    return weights


def smooth(kernel: Callable[[np.ndarray], np.ndarray], reach: int) -> Converter:
    """The spatial axes resized by a kernel that widens where the image becomes smaller."""

    def convert(c: TorchContext, n: AtenCall) -> Result:
        x: str = n["self"]
        for axis, name in ((3, "scales_w"), (2, "scales_h")):
            old, new = as_int(c.type(x).shape[axis]), as_int(n.type.shape[axis])
            if old is None or new is None:
                raise n.unsupported("an axis of dynamic size", "axes of known sizes")
            scale = 1 / n[name] if n[name] else old / new
            if n["align_corners"]:
                scale = (old - 1) / (new - 1) if new > 1 else 0.0
            if scale != 1:
                exact = accumulator(n.dtype).numpy.type(scale)
                x = along(c, n, x, axis, _smooth_weights(old, new, exact, kernel, reach))
        return x

    return convert


_GRID_MODES = ("linear", "nearest", "cubic")
# Where torch moves to the border what is taken for a position, and not the position itself.
_STAYS = ("cubic", "border")


def grid_sample(c: TorchContext, n: AtenCall) -> Result:
    """Samples at the positions of a grid."""
    mode, padding = _GRID_MODES[n["interpolation_mode"]], PADDINGS[n["padding_mode"]]
    attrs = GridSampleAttrs(mode, padding, n["align_corners"], (mode, padding) != _STAYS)
    return c.add(n, "grid_sample", n["input"], n["grid"], attrs=attrs)


CONVERTERS: dict[str, Converter] = {
    **{f"aten.upsample_nearest{d}d": upsample(d, "nearest") for d in (1, 2, 3)},
    "aten.upsample_linear1d": upsample(1, "linear"),
    "aten.upsample_bilinear2d": upsample(2, "linear"),
    "aten.upsample_trilinear3d": upsample(3, "linear"),
    "aten.upsample_bicubic2d": upsample(2, "cubic"),
    "aten._upsample_bilinear2d_aa": smooth(_triangle, 1),
    "aten._upsample_bicubic2d_aa": smooth(_cubic, 2),
    **{f"aten.grid_sampler_{d}d": grid_sample for d in (2, 3)},
}
