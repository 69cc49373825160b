"""Special functions: gamma, error, Bessel and Airy functions, Chebyshev polynomials."""

from __future__ import annotations

from tilewright.frontends.torch.context import AtenCall, Converter, Result, TorchContext
from tilewright.ir.graph.nodes import NO_ATTRS, Attrs
from tilewright.ops.elementwise.special.chebyshev import KINDS, ChebyshevAttrs
from tilewright.ops.elementwise.special.gamma import PolygammaAttrs
from tilewright.ops.elementwise.special.incomplete_gamma import IncompleteGammaAttrs
from tilewright.ops.elementwise.special.modified_bessel import ModifiedBesselAttrs


def of_one(op: str, attrs: Attrs = NO_ATTRS) -> Converter:
    """A function of one number, in the type of its result."""

    def convert(c: TorchContext, n: AtenCall) -> Result:
        x = c.operand(n, n.get("self", n.get("x")), n.dtype)
        return c.add(n, op, x, attrs=attrs)

    return convert


def of_two(op: str, attrs: Attrs = NO_ATTRS) -> Converter:
    """A function of two numbers, in the type of its result."""

    def convert(c: TorchContext, n: AtenCall) -> Result:
        first, second = (n.args[name] for name in list(n.args)[:2])
        operands = (c.operand(n, value, n.dtype) for value in (first, second))
        return c.add(n, op, *operands, attrs=attrs)

    return convert


def polygamma(c: TorchContext, n: AtenCall) -> Result:
    """Some derivative of digamma."""
    x = c.operand(n, n["self"], n.dtype)
    return c.add(n, "polygamma", x, attrs=PolygammaAttrs(int(n["n"])))


_SAME_NAME = ("bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "spherical_bessel_j0", "airy_ai")
_MODIFIED = {
    **{f"aten.{name}": ("i", 0, False) for name in ("i0", "special_modified_bessel_i0")},
    **{f"aten.special_{name}": ("i", 1, False) for name in ("i1", "modified_bessel_i1")},
    **{f"aten.special_i{order}e": ("i", order, True) for order in (0, 1)},
    **{f"aten.special_modified_bessel_k{order}": ("k", order, False) for order in (0, 1)},
    **{f"aten.special_scaled_modified_bessel_k{order}": ("k", order, True) for order in (0, 1)},
}

CONVERTERS: dict[str, Converter] = {
    "aten.lgamma": of_one("lgamma"),
    "aten.digamma": of_one("polygamma", PolygammaAttrs(0)),
    "aten.polygamma": polygamma,
    "aten.special_zeta": of_two("zeta"),
    "aten.igamma": of_two("igamma", IncompleteGammaAttrs()),
    "aten.igammac": of_two("igamma", IncompleteGammaAttrs(upper=True)),
    "aten.erfc": of_one("erfc"),
    "aten.special_erfcx": of_one("erfcx"),
    "aten.erfinv": of_one("erfinv"),
    "aten.special_ndtri": of_one("ndtri"),
    **{f"aten.special_{name}": of_one(name) for name in _SAME_NAME},
    **{
        name: of_one(f"modified_bessel_{kind}", ModifiedBesselAttrs(order, scaled))
        for name, (kind, order, scaled) in _MODIFIED.items()
    },
    **{
        f"aten.special_{prefix}chebyshev_polynomial_{kind}": of_two(
            "chebyshev", ChebyshevAttrs(kind, bool(prefix))
        )
        for kind in KINDS
        for prefix in ("", "shifted_")
    },
}
