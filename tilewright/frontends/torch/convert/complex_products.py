"""Products of complex numbers and tensors: each of four products of real ones."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tilewright.arith.expr import as_int, const
from tilewright.frontends.torch.complex_math import Complex, Real
from tilewright.frontends.torch.complex_value import ComplexValue, real_dtype, real_type
from tilewright.frontends.torch.context import AtenCall, TorchContext, ValueName, axes_of
from tilewright.frontends.torch.convert.complex_operands import (
    ComplexConverter,
    as_complex,
    as_value,
    complex_operands,
    times_alpha,
)
from tilewright.frontends.torch.convert.shape import expanded
from tilewright.frontends.torch.table import converter
from tilewright.ops.tensor.slicing import ConcatAttrs, SliceAttrs


def product_of(c: TorchContext, n: AtenCall) -> Any:
    """The product along axes: both halves of a row are multiplied until one element is left."""
    z = complex_operands(c, n, "self")[0]
    for axis in axes_of(n, len(z.re.shape)):
        count = as_int(z.re.shape[axis])
        if count is None:
            raise n.unsupported("a product of complex numbers of unknown count", "use known sizes")
        shape = list(z.re.shape)
        while count != 1:
            shape[axis] = const(count % 2 if count else 1)
            one = (expanded(c, n, c.constant(v, z.re.dtype), shape) for v in (1, 0))
            longer = [_with(x, y, axis) for x, y in zip((z.re, z.im), one, strict=True)]
            count = (count + 1) // 2
            halves = [[_cut(x, axis, k * count, (k + 1) * count) for x in longer] for k in (0, 1)]
            z = Complex(*halves[0]) * Complex(*halves[1]) if count else Complex(*longer)
            count = max(count, 1)
    return as_value(Complex(z.re.reshape(n.type.shape), z.im.reshape(n.type.shape)))


def _with(x: Real, ones: str, axis: int) -> Real:
    return x.apply("concat", x.called(ones), attrs=ConcatAttrs(axis))


def _cut(x: Real, axis: int, start: int, stop: int) -> Real:
    rank = len(x.shape)
    starts = tuple(const(start if a == axis else 0) for a in range(rank))
    stops = tuple(const(stop) if a == axis else d for a, d in enumerate(x.shape))
    return x.apply("slice", attrs=SliceAttrs(starts, stops, (1,) * rank, inside=True))


def bilinear(first: str, second: str, conjugated: bool = False) -> ComplexConverter:
    """A product that is linear in two operands: four real ones by the converter of these."""

    def convert(c: TorchContext, n: AtenCall) -> Any:
        a, b = complex_operands(c, n, first, second)
        return as_value(_product(c, n, a.conj if conjugated else a, b, first, second))

    return convert


def _product(
    c: TorchContext, n: AtenCall, a: Complex, b: Complex, first: str, second: str
) -> Complex:
    one = replace(n, results=tuple(t and real_type(t) for t in n.results))

    def real(x: Real, y: Real) -> Real:
        a, b = (_shaped(c, n, v, n[name]) for v, name in ((x, first), (y, second)))
        args = {**n.args, first: ValueName(a), second: ValueName(b)}
        return x.called(
            str(converter(_REAL_PRODUCT.get(n.op, n.op), n.loc)(c, replace(one, args=args)))
        )

    re = real(a.re, b.re) - real(a.im, b.im)
    return Complex(re, real(a.re, b.im) + real(a.im, b.re))


def _shaped(c: TorchContext, n: AtenCall, x: Real, operand: Any) -> str:
    """A part of an operand in the operand's shape: of a real one the imaginary part is a number."""
    whole = operand.re if isinstance(operand, ComplexValue) else operand
    return expanded(c, n, x.name, c.type(whole).shape)


# Products whose real counterpart goes by another name.
_REAL_PRODUCT = {"aten.vdot.default": "aten.dot.default"}


def added_product(first: str, second: str, product: str) -> ComplexConverter:
    """`beta * self + alpha * (first @ second)`."""

    def convert(c: TorchContext, n: AtenCall) -> Any:
        a, b, more = complex_operands(c, n, first, second, "self")
        args = {"self": n[first], "mat2": n[second]}
        y = _product(c, replace(n, op=product, args=args), a, b, "self", "mat2")
        y = times_alpha(c, n, y)
        if n["beta"] == 0:
            return as_value(y)
        return as_value(y + more * as_complex(c, n, n["beta"], real_dtype(n.dtype)))

    return convert


def convolution(c: TorchContext, n: AtenCall) -> Any:
    """The convolution, and a bias for each channel."""
    bias, plain = n["bias"], replace(n, args={**n.args, "bias": None})
    x, weight = complex_operands(c, n, "input", "weight")
    y = _product(c, plain, x, weight, "input", "weight")
    if bias is None:
        return as_value(y)
    rank = n.type.rank
    shape = tuple(n.type.shape[1] if a == 1 else const(1) for a in range(rank))
    z = as_complex(c, n, bias, real_dtype(n.dtype))
    return as_value(y + Complex(z.re.reshape(shape), z.im.reshape(shape)))


CONVERTERS: dict[str, ComplexConverter] = {
    "aten.prod": product_of,
    "aten.mm": bilinear("self", "mat2"),
    "aten.bmm": bilinear("self", "mat2"),
    "aten.mv": bilinear("self", "vec"),
    "aten.dot": bilinear("self", "tensor"),
    "aten.vdot": bilinear("self", "other", conjugated=True),
    "aten.addmm": added_product("mat1", "mat2", "aten.mm.default"),
    "aten.baddbmm": added_product("batch1", "batch2", "aten.bmm.default"),
    "aten.convolution": convolution,
}
