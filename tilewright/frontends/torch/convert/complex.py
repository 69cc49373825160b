"""Operators with complex operands or results, on pairs of real values.

What moves elements is done to both parts by the converter of real tensors; functions are formulas
of `complex_math`; products are in `complex_products`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tilewright.core.dtypes import BOOL, C64, C128, F32, F64
from tilewright.frontends.torch.complex_math import (
    FUNCTIONS,
    Complex,
    Real,
    angle,
    magnitude,
    power,
)
from tilewright.frontends.torch.complex_value import (
    ComplexValue,
    interleaved,
    parts,
    real_dtype,
    real_type,
)
from tilewright.frontends.torch.context import AtenCall, TorchContext, ValueName
from tilewright.frontends.torch.convert import complex_products, fft
from tilewright.frontends.torch.convert.complex_operands import (
    ComplexConverter,
    as_complex,
    as_value,
    as_whole_value,
    complex_operands,
    times_alpha,
)
from tilewright.frontends.torch.convert.shape import expanded
from tilewright.frontends.torch.table import converter

# Arguments that hold elements: of a real one the imaginary part is 0. Others are as they are.
_ELEMENTS = ("self", "other", "value", "values", "fill_value", "tensors", "src", "source", "s")
_MOVES = (
    *(
        "view",
        "_unsafe_view",
        "reshape",
        "view_copy",
        "squeeze",
        "unsqueeze",
        "permute",
        "transpose",
    ),
    *("t", "expand", "repeat", "flip", "tril", "triu", "slice", "select", "slice_scatter", "copy"),
    *("select_scatter", "cat", "split", "split_with_sizes", "unbind", "constant_pad_nd", "index"),
    *("reflection_pad1d", "reflection_pad2d", "reflection_pad3d", "roll", "diagonal", "as_strided"),
    *("replication_pad1d", "replication_pad2d", "replication_pad3d", "unfold", "diag_embed"),
    *(
        "index_select",
        "gather",
        "scatter",
        "scatter_add",
        "_unsafe_index",
        "index_put",
        "embedding",
    ),
    *("_unsafe_index_put", "index_copy", "index_add", "where", "masked_fill", "clone", "alias"),
    *("detach", "lift_fresh_copy", "lift_fresh", "contiguous", "positive", "full", "full_like"),
    *("fill", "scalar_tensor", "empty", "empty_permuted", "sum", "mean", "cumsum", "rot90"),
    *("masked_scatter", "take", "stack", "as_strided_scatter", "diagonal_scatter", "narrow"),
)


def _leaves(value: Any) -> list[Any]:
    return [x for item in value for x in _leaves(item)] if isinstance(value, list) else [value]


def is_complex(n: AtenCall) -> bool:
    """Whether a call has complex operands or results."""
    given = any(isinstance(x, ComplexValue | complex) for v in n.args.values() for x in _leaves(v))
    return given or any(t is not None and t.dtype in (C64, C128) for t in n.results)


def moved(c: TorchContext, n: AtenCall) -> Any:
    """Both parts by the converter of real tensors."""
    convert: ComplexConverter = converter(n.op, n.loc)
    re, im = (convert(c, _part(c, n, is_imaginary)) for is_imaginary in (False, True))
    if not isinstance(re, tuple):
        return ComplexValue(re, im)
    return tuple(x if x is None else ComplexValue(x, y) for x, y in zip(re, im, strict=True))


def _part(c: TorchContext, n: AtenCall, is_imaginary: bool) -> AtenCall:
    """The call for one part of all operands."""
    args = {
        name: _part_of(c, n, value, is_imaginary, name in _ELEMENTS)
        for name, value in n.args.items()
    }
    if args.get("dtype") is not None:
        args["dtype"] = None
    return replace(n, args=args, results=tuple(t and real_type(t) for t in n.results))


def _part_of(
    c: TorchContext, n: AtenCall, value: Any, is_imaginary: bool, has_elements: bool
) -> Any:
    if isinstance(value, list):
        return [_part_of(c, n, item, is_imaginary, has_elements) for item in value]
    if isinstance(value, ComplexValue):
        return ValueName(value.im if is_imaginary else value.re)
    if isinstance(value, complex):
        return value.imag if is_imaginary else value.real
    if not has_elements or not is_imaginary or value is None:
        return value
    if isinstance(value, ValueName):
        real = real_dtype(n.dtype)
        return ValueName(expanded(c, n, c.constant(0, real), c.type(value).shape))
    return 0


def without_imaginary(c: TorchContext, n: AtenCall) -> Any:
    """What is made of no elements has an imaginary part of zeros."""
    re = str(converter(n.op, n.loc)(c, _part(c, n, False)))
    zero = c.constant(0, real_dtype(n.dtype))
    return ComplexValue(re, expanded(c, n, zero, c.type(re).shape))


def converted(c: TorchContext, n: AtenCall) -> Any:
    """To another type: to a real one without the imaginary part, to bool where either is not 0."""
    x = next(iter(n.args.values()))
    if n.dtype == BOOL:
        return as_complex(c, n, x, F64).is_nonzero.name
    if isinstance(x, ComplexValue) and n.dtype not in (C64, C128):
        return c.operand(n, ValueName(x.re), n.dtype)
    return as_whole_value(c, n, as_complex(c, n, x, real_dtype(n.dtype)))


def function(formula: Callable[[Complex], Complex]) -> ComplexConverter:
    """A function of one number."""
    return lambda c, n: as_value(formula(complex_operands(c, n, "self")[0]))


def add(c: TorchContext, n: AtenCall) -> Any:
    """`self + alpha * other`."""
    a, b = complex_operands(c, n, "self", "other")
    return as_whole_value(c, n, a + times_alpha(c, n, b))


def subtract(c: TorchContext, n: AtenCall) -> Any:
    """`self - alpha * other`."""
    a, b = complex_operands(c, n, "self", "other")
    return as_whole_value(c, n, a - times_alpha(c, n, b))


def reverse_subtract(c: TorchContext, n: AtenCall) -> Any:
    """`other - alpha * self`."""
    a, b = complex_operands(c, n, "self", "other")
    return as_whole_value(c, n, b - times_alpha(c, n, a))


def multiply(c: TorchContext, n: AtenCall) -> Any:
    """The product; with a real number both parts are multiplied."""
    real = real_dtype(n.dtype)
    pair = [n["self"], n["other"]]
    for x, y in (pair, pair[::-1]):
        if isinstance(x, ComplexValue) and isinstance(y, int | float):
            return as_value(as_complex(c, n, x, real).scaled(float(y)))
    a, b = complex_operands(c, n, "self", "other")
    return as_whole_value(c, n, a * b)


def divide(c: TorchContext, n: AtenCall) -> Any:
    """The quotient."""
    a, b = complex_operands(c, n, "self", "other")
    return as_whole_value(c, n, a / b)


def raised(c: TorchContext, n: AtenCall) -> Any:
    """A power; small whole ones are products."""
    real, exponent = real_dtype(n.dtype), n["exponent"]
    base = as_complex(c, n, n["self"], real)
    if exponent == 2:
        return as_value(base * base)
    if exponent == 3:
        return as_value(base * base * base)
    if exponent == -1:
        return as_value(base.number(1) / base)
    if exponent == 0.5:
        return as_value(FUNCTIONS["sqrt"](base))
    return as_whole_value(c, n, power(base, as_complex(c, n, exponent, real)))


def _compared(c: TorchContext, n: AtenCall) -> Real:
    """Whether two operands are equal."""
    a, b = n["self"], n["other"]
    wide = any(_is_double(c, x) for x in (a, b))
    x, y = (as_complex(c, n, v, F64 if wide else F32) for v in (a, b))
    return x.re.apply("equal", y.re).apply("and", x.im.apply("equal", y.im))


def _is_double(c: TorchContext, value: Any) -> bool:
    name = value.re if isinstance(value, ComplexValue) else value
    return isinstance(name, str) and c.type(name).dtype == F64


def _truths(c: TorchContext, n: AtenCall, *names: str) -> list[Real]:
    return [as_complex(c, n, n[name], F64).is_nonzero for name in names]


def logical(op: str) -> ComplexConverter:
    """Operands as truth values."""

    def convert(c: TorchContext, n: AtenCall) -> Any:
        first, *rest = _truths(c, n, *(x for x in ("self", "other") if x in n.args))
        return first.apply(op, *rest).name

    return convert


def truth(c: TorchContext, n: AtenCall) -> Any:
    """Whether any, or all, elements are other than zero."""
    args = {**n.args, "self": ValueName(_truths(c, n, "self")[0].name)}
    return converter(n.op, n.loc)(c, replace(n, args=args))


def either(c: TorchContext, n: AtenCall) -> Any:
    """A question that is true of a number if it is of one part."""
    z = n["self"]
    calls = (replace(n, args={"self": ValueName(x)}) for x in (z.re, z.im))
    return c.add(n, "or", *(str(converter(n.op, n.loc)(c, call)) for call in calls))


def of_parts(c: TorchContext, n: AtenCall) -> Any:
    """A complex tensor of two real ones."""
    both = (c.operand(n, n[name], real_dtype(n.dtype)) for name in ("real", "imag"))
    return as_whole_value(c, n, Complex(*(Real(c.g, x) for x in both)))


def polar(c: TorchContext, n: AtenCall) -> Any:
    """A complex tensor of magnitudes and angles."""
    size, turn = (Real(c.g, n[name]) for name in ("abs", "angle"))
    return as_value(Complex(size * turn.apply("cos"), size * turn.apply("sin")))


def one_part(name: str) -> ComplexConverter:
    """The real or the imaginary part."""
    return lambda c, n: getattr(n["self"], name)


def real_function(formula: Callable[[Complex], Real]) -> ComplexConverter:
    """A real number of a complex one."""

    def convert(c: TorchContext, n: AtenCall) -> Any:
        return formula(as_complex(c, n, n["self"], n.dtype)).name

    return convert


def norm(c: TorchContext, n: AtenCall) -> Any:
    """The norm of vectors is that of the magnitudes."""
    size = magnitude(as_complex(c, n, n["self"], n.dtype))
    return converter(n.op, n.loc)(c, replace(n, args={**n.args, "self": ValueName(size.name)}))


def variance(c: TorchContext, n: AtenCall) -> Any:
    """The sum of the variances of both parts."""
    convert = converter("aten.var.correction", n.loc)
    z = n["self"]
    calls = (replace(n, args={**n.args, "self": ValueName(x)}) for x in (z.re, z.im))
    return c.add(n, "add", *(str(convert(c, call)) for call in calls))


CONVERTERS: dict[str, ComplexConverter] = {
    **complex_products.CONVERTERS,
    **fft.COMPLEX_CONVERTERS,
    **{f"aten.{name}": moved for name in _MOVES},
    "aten.eye": without_imaginary,
    **{f"aten.{name}": function(formula) for name, formula in FUNCTIONS.items()},
    **{f"aten.{name}": converted for name in ("_to_copy", "to")},
    "prims.convert_element_type": converted,
    "aten.add": add,
    "aten.sub": subtract,
    "aten.rsub": reverse_subtract,
    "aten.mul": multiply,
    "aten.div": divide,
    "aten.true_divide": divide,
    "aten.pow": raised,
    "aten.eq": lambda c, n: _compared(c, n).name,
    "aten.ne": lambda c, n: _compared(c, n).apply("not").name,
    **{f"aten.logical_{op}": logical(op) for op in ("and", "or", "xor", "not")},
    "aten.any": truth,
    "aten.all": truth,
    "aten.isnan": either,
    "aten.isinf": either,
    "aten.abs": real_function(magnitude),
    "aten.angle": real_function(lambda z: angle(z.im, z.re)),
    "aten.real": one_part("re"),
    "aten.imag": one_part("im"),
    "aten.view_as_real": lambda c, n: interleaved(c.g, n["self"]),
    "aten.view_as_complex": lambda c, n: parts(c.g, n["self"]),
    "aten.complex": of_parts,
    "aten.polar": polar,
    "aten.linalg_vector_norm": norm,
    "aten.var": variance,
}


def complex_converter(n: AtenCall) -> ComplexConverter:
    """The rule for a call with complex operands or results."""
    packet = ".".join(n.op.split(".")[:2])
    found = CONVERTERS.get(packet)
    if found is None:
        raise n.unsupported("complex operands", "see docs/howto/pytorch.md")
    return found
