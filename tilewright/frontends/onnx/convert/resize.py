"""Resize and Upsample."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from tilewright.arith.expr import Expr, as_int, const
from tilewright.arith.simplify import simplify
from tilewright.frontends.onnx.context import Converter, OnnxContext, OnnxNode
from tilewright.frontends.onnx.convert.antialias import antialiased
from tilewright.ir.types import Shape
from tilewright.ops.image.resize import ResizeAttrs
from tilewright.ops.op import normalize_axis

Scale = tuple[Expr, Expr]
SAME: Scale = (const(1), const(1))
# How one scale is chosen for all dimensions.
POLICIES: dict[str, Callable[[Iterable[Fraction]], Fraction]] = {
    "not_larger": min,
    "not_smaller": max,
}


@dataclass
class Target:
    """What one dimension becomes: its new size and the scale, a fraction, that leads there."""

    size: Expr
    scale: Scale


def simplest(value: float) -> Fraction:
    """The simplest fraction that is `value` as an f32: 1/3 for 0.33333334."""
    for limit in (10, 1000, 100_000):
        found = Fraction(value).limit_denominator(limit)
        if np.float32(float(found)) == np.float32(value):
            return found
    return Fraction(value).limit_denominator(1 << 24)


def by_scale(n: OnnxNode, size: Expr, scale: float) -> Target:
    """A dimension multiplied by `scale`, rounded down."""
    if not 0 < scale < math.inf:
        raise n.invalid(f"the scale {scale} is not above 0, or not finite")
    exact = simplest(scale)
    if not exact:
        raise n.invalid(f"the scale {scale} is hardly above 0")
    up, down = const(exact.numerator), const(exact.denominator)
    number = as_int(size)
    if number is None:
        return Target(simplify(size * up // down), (up, down))
    # As other runtimes compute it: in f32.
    return Target(const(int(np.float32(number) * np.float32(scale))), (up, down))


def by_size(size: Expr, wanted: Expr) -> Target:
    """A dimension brought to a given size."""
    old, new = as_int(size), as_int(wanted)
    if old is None or new is None or old == 0:
        same = size is wanted
        return Target(wanted, SAME if same else (wanted, size))
    exact = Fraction(new, old)
    return Target(wanted, (const(exact.numerator), const(exact.denominator)))


def _by_aspect(
    n: OnnxNode, dims: Sequence[Expr], wanted: Sequence[Expr], policy: str
) -> list[Target]:
    """One scale for all dimensions: the sizes are upper or lower limits."""
    pairs = [(as_int(d), as_int(w)) for d, w in zip(dims, wanted, strict=True)]
    ratios = [Fraction(w, d) for d, w in pairs if d and w is not None]
    if len(ratios) != len(pairs):
        raise n.unsupported(
            f"keep_aspect_ratio_policy {policy} with dynamic dimensions", "fix the dimensions"
        )
    scale = POLICIES[policy](ratios)
    fraction = (const(scale.numerator), const(scale.denominator))
    return [Target(const(int(d * scale + Fraction(1, 2))), fraction) for d, _ in pairs if d]


def _floats(c: OnnxContext, n: OnnxNode, index: int) -> list[float] | None:
    """Input `index` as numbers; `None` where it is absent or empty."""
    if not n.has_input(index):
        return None
    data = c.constant_of(n.input(index))
    if data is None:
        raise c.needs_value(n, index)
    return [float(v) for v in data.reshape(-1)] or None


def _targets(c: OnnxContext, n: OnnxNode, dims: Sequence[Expr]) -> list[Target]:
    """What the resized dimensions become."""
    scales = _floats(c, n, 2)
    if scales is not None:
        if len(scales) != len(dims):
            raise n.invalid(f"{len(scales)} scales for {len(dims)} dimensions")
        return [by_scale(n, d, s) for d, s in zip(dims, scales, strict=True)]
    sizes = [simplify(s) for s in c.known_ints(n, 3)]
    if len(sizes) != len(dims):
        raise n.invalid(f"{len(sizes)} sizes for {len(dims)} dimensions")
    policy = n.str_attr("keep_aspect_ratio_policy", "stretch")
    for size, wanted in zip(dims, sizes, strict=True):
        c.require(n, wanted.eq(size) | (const(0) < wanted), f"a size of {wanted} for {size}")
    if policy == "stretch":
        return [by_size(d, s) for d, s in zip(dims, sizes, strict=True)]
    if policy not in POLICIES:
        known = ", ".join(("stretch", *POLICIES))
        raise n.invalid(f"keep_aspect_ratio_policy is {policy!r}", f"one of {known}")
    return _by_aspect(n, dims, sizes, policy)


def _add(c: OnnxContext, n: OnnxNode, attrs: ResizeAttrs) -> tuple[str, ...]:
    x = n.required(0)
    if all(s[0] is s[1] for s in attrs.scales) and attrs.shape == c.type(x).shape and not attrs.roi:
        return (x,)
    return (c.add(n, "resize_nearest" if attrs.mode == "nearest" else "resize", x, attrs=attrs),)


def _roi(
    c: OnnxContext, n: OnnxNode, axes: Sequence[int], rank: int
) -> tuple[tuple[float, float], ...]:
    given = _floats(c, n, 1) or []
    if len(given) != 2 * len(axes):
        raise n.invalid(f"the region of interest has {len(given)} entries for {len(axes)} axes")
    regions = [(0.0, 1.0)] * rank
    for i, axis in enumerate(axes):
        regions[axis] = (given[i], given[len(axes) + i])
    return tuple(regions)


def _is_antialiased(n: OnnxNode, targets: Sequence[Target]) -> bool:
    """Whether antialiasing is wanted, and a dimension shrinks, so that it changes anything."""
    shrinks = any(
        (up := as_int(t.scale[0])) is None or (down := as_int(t.scale[1])) is None or up < down
        for t in targets
    )
    return (
        bool(n.int_attr("antialias", 0)) and n.str_attr("mode", "nearest") != "nearest" and shrinks
    )


def resize(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """Resize; version 10 has no modes and is like Upsample."""
    if n.opset < 11:
        return upsample(c, n)
    shape: Shape = c.type(n.required(0)).shape
    rank = len(shape)
    axes = [normalize_axis("Resize", a, rank) for a in n.ints_attr("axes", range(rank))]
    targets = _targets(c, n, [shape[a] for a in axes])
    transform = n.str_attr("coordinate_transformation_mode", "half_pixel")
    every = [Target(d, SAME) for d in shape]
    for axis, target in zip(axes, targets, strict=True):
        every[axis] = target
    attrs = ResizeAttrs(
        tuple(t.size for t in every),
        tuple(t.scale for t in every),
        mode=n.str_attr("mode", "nearest"),
        transform=transform,
        rounding=n.str_attr("nearest_mode", "round_prefer_floor"),
        cubic_coeff=n.float_attr("cubic_coeff_a", -0.75),
        exclude_outside=bool(n.int_attr("exclude_outside", 0)),
        extrapolation=n.float_attr("extrapolation_value", 0.0),
        roi=_roi(c, n, axes, rank) if transform == "tf_crop_and_resize" else (),
    )
    if not _is_antialiased(n, targets):
        return _add(c, n, attrs)
    if attrs.roi:
        raise n.unsupported("antialias of a region of interest", "set antialias to 0")
    return (antialiased(c, n, n.required(0), attrs),)


def _upsample_scales(c: OnnxContext, n: OnnxNode) -> Sequence[float] | None:
    """Two attributes in version 1, one in version 7, and an input since."""
    if n.opset < 7:
        return 1.0, 1.0, n.float_attr("height_scale"), n.float_attr("width_scale")
    return n.floats_attr("scales") if n.has_attr("scales") else _floats(c, n, 1)


def upsample(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """Upsample, and Resize as it first was: positions divided by the scale, rounded down."""
    shape = c.type(n.required(0)).shape
    scales = _upsample_scales(c, n)
    if scales is None or len(scales) != len(shape):
        raise n.invalid(f"{len(shape)} scales are needed")
    if min(scales, default=1) < 1:
        raise n.invalid(f"the scales {list(scales)} make it smaller", "use Resize for that")
    targets = [by_scale(n, d, s) for d, s in zip(shape, scales, strict=True)]
    mode = n.str_attr("mode", "nearest")
    attrs = ResizeAttrs(
        tuple(t.size for t in targets),
        tuple(t.scale for t in targets),
        mode="linear" if mode == "bilinear" else mode,
        transform="asymmetric",
        rounding="floor",
    )
    return _add(c, n, attrs)


CONVERTERS: dict[str, Converter] = {"Resize": resize, "Upsample": upsample}
