"""Arithmetic on elements against NumPy."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest

from tests.for_each import for_each
from tests.ops.run_op import run_op
from tilewright.core.dtypes import BF16, BOOL, F16, F32, F64, I8, I16, I32, I64, U8, DType
from tilewright.core.errors import TypeCheckError
from tilewright.ir.types import tensor
from tilewright.ops.elementwise.arithmetic import CastAttrs, ModAttrs
from tilewright.ops.graph_builder import GraphBuilder

INF, NAN = math.inf, math.nan
SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 1.5, 2.5, 88.0, -104.0, INF, -INF, NAN], "f4")

FLOAT_FUNCTIONS = {
    "exp": np.exp,
    "log": np.log,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "reciprocal": lambda x: 1 / x,
    "erf": np.vectorize(math.erf, otypes="d"),
    "floor": np.floor,
    "ceil": np.ceil,
    "round": np.rint,
    **{name: getattr(np, name) for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
    **{f"a{name}": getattr(np, f"arc{name}") for name in ("sin", "cos", "tan", "sinh", "tanh")},
    "acosh": np.arccosh,
}
ANY_FUNCTIONS = {"abs": np.abs, "neg": np.negative, "sign": np.sign}
OPERATORS = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
}
FLOATS = ["float32", "float64", "float16", "bfloat16"]
INTEGERS = ["int8", "uint8", "int16", "int32", "int64", "uint32", "uint64"]


def _random(shape: tuple[int, ...], dtype: str, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if np.dtype(dtype).kind in "iu":
        low = 0 if np.dtype(dtype).kind == "u" else -100
        return rng.integers(low, 100, shape).astype(dtype)
    return (rng.standard_normal(shape) * 3).astype(np.dtype(dtype))


def _check(found: np.ndarray, expected: np.ndarray, tolerance: float = 0) -> None:
    """Bit for bit up to one rounding of the result type, and `tolerance` relative to it."""
    assert found.dtype == expected.dtype
    if found.dtype.kind in "biu":
        np.testing.assert_array_equal(found, expected)
        return
    step = float(ml_dtypes.finfo(found.dtype).eps)
    np.testing.assert_allclose(
        found.astype("f8"), expected.astype("f8"), rtol=max(2 * step, tolerance), atol=1e-30
    )


@for_each("dtype", FLOATS)
@for_each("name", [*FLOAT_FUNCTIONS, *ANY_FUNCTIONS])
def test_function_of_floats(name: str, dtype: str) -> None:
    reference = {**FLOAT_FUNCTIONS, **ANY_FUNCTIONS}[name]
    x = np.concatenate([SPECIAL.astype(np.dtype(dtype)), _random((20,), dtype)])
    with np.errstate(all="ignore"):
        expected = reference(x.astype("f8")).astype(x.dtype)
    _check(run_op(name, x), expected)


@for_each("dtype", INTEGERS)
@for_each("name", ANY_FUNCTIONS)
def test_function_of_integers(name: str, dtype: str) -> None:
    limits = np.array([np.iinfo(dtype).min, np.iinfo(dtype).max], dtype)
    x = np.concatenate([_random((9,), dtype), limits])
    _check(run_op(name, x), ANY_FUNCTIONS[name](x))


@for_each("dtype", [*FLOATS, *INTEGERS])
@for_each("name", OPERATORS)
def test_operator(name: str, dtype: str) -> None:
    a, b = _random((3, 1, 5), dtype, 1), _random((4, 1), dtype, 2)
    with np.errstate(all="ignore"):
        expected = OPERATORS[name](a, b)
    _check(run_op(name, a, b), expected)
    _check(run_op(name, a, b, dims=[("A", 1, "B"), ("C", 1)]), expected)


@for_each("name", ["add", "sub", "mul", "div", "min", "max"])
def test_special_values(name: str) -> None:
    a, b = SPECIAL[:, None], SPECIAL[None, :]
    with np.errstate(all="ignore"):
        expected = {**OPERATORS, "div": np.divide}[name](a, b)
    found = run_op(name, a, b)
    np.testing.assert_array_equal(found, expected)
    if name not in ("min", "max"):  # which may return either zero
        np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))


@for_each("shape", [(), (0,), (3, 0, 2), (1, 1)])
def test_odd_shapes(shape: tuple[int, ...]) -> None:
    x = np.ones(shape, np.float32)
    assert run_op("add", x, x).shape == shape
    assert run_op("exp", x).shape == shape


def test_integer_division_truncates() -> None:
    a = np.array([7, -7, 7, -7, 0, 6], np.int32)
    b = np.array([2, 2, -2, -2, 5, -3], np.int32)
    _check(run_op("div", a, b), np.array([3, -3, -3, 3, 0, -2], np.int32))
    _check(run_op("div", a.astype("u1"), b[:1].astype("u1")), a.astype("u1") // np.uint8(2))


@for_each("dtype", ["int8", "int32", "int64", "float32", "float16", "float64"])
def test_mod(dtype: str) -> None:
    a = np.array([-7, 7, -7, 7, 6, -6, 5], dtype)
    b = np.array([3, -3, -3, 3, 3, 3, 8], dtype)
    _check(run_op("mod", a, b, attrs=ModAttrs()), np.mod(a, b))
    _check(run_op("mod", a, b, attrs=ModAttrs(fmod=True)), np.fmod(a, b))


@for_each(
    ("base", "exponent"),
    [
        ("float32", "float32"),
        ("float32", "int64"),
        ("int32", "float32"),
        ("int64", "int32"),
        ("float64", "float32"),
        ("float16", "float16"),
        ("int64", "int64"),
    ],
)
def test_pow_has_the_type_of_its_base(base: str, exponent: str) -> None:
    x, y = np.array([1, 2, 3, 4, 9], base), np.array([0, 1, 2, 3, 2], exponent)
    expected = (x.astype("f8") ** y.astype("f8")).astype(base)
    _check(run_op("pow", x, y), expected)


def test_pow_of_special_values() -> None:
    x, y = SPECIAL[:, None], np.array([0, 0.5, 2, -1, 3], np.float32)
    with np.errstate(all="ignore"):
        _check(run_op("pow", x, y), np.power(x.astype("f8"), y).astype("f4"), 1e-6)


@for_each("to", [F32, F64, F16, BF16, I32, I64, U8, BOOL])
@for_each("source", ["float32", "float64", "float16", "int32", "int64", "bool"])
def test_cast(source: str, to: DType) -> None:
    x = np.array([0, 1, 2.75, 100, 3], np.float64).astype(source)
    _check(run_op("cast", x, attrs=CastAttrs(to)), x.astype(to.numpy))


def test_cast_saturates() -> None:
    x = np.array([300.0, -300.0, NAN, INF, -1.5], np.float32)
    found = run_op("cast", x, attrs=CastAttrs(I8))
    np.testing.assert_array_equal(found, [127, -128, 0, 127, -1])


def test_type_errors() -> None:
    with pytest.raises(TypeCheckError, match="exp: is not defined on i32"):
        run_op("exp", np.ones(3, np.int32))
    with pytest.raises(TypeCheckError, match="operands have types f32, i32"):
        run_op("add", np.ones(3, np.float32), np.ones(3, np.int32))
    with pytest.raises(TypeCheckError, match="dimensions 3, 4 do not broadcast"):
        run_op("add", np.ones(3, np.float32), np.ones(4, np.float32))
    with pytest.raises(TypeCheckError, match="bool"):
        run_op("add", np.ones(3, bool), np.ones(3, bool))


def _known(build: str) -> str:
    """What the builder knows of the result of a little shape arithmetic on `[n, 4]`."""
    from tilewright.arith.expr import Var

    g = GraphBuilder("test")
    shape = g.input("s", tensor(I64, 2))
    box = np.empty(2, dtype=object)
    box[:] = [Var("n"), Var("n") * 0 + 4]
    g._known[shape] = box
    two = g.constant(np.array(2), "two")
    ops = {
        "div": lambda: g.add("div", shape, two),
        "max": lambda: g.add("max", g.add("neg", shape), two),
        "cast": lambda: g.add("cast", g.add("add", shape, two), attrs=CastAttrs(I32)),
        "mod": lambda: g.add("mod", shape, two, attrs=ModAttrs()),
    }
    known = g.symbolic_value(ops[build]())
    assert known is not None
    return str(list(map(str, known)))


@for_each(
    ("build", "expected"),
    [
        ("div", "['n // 2', '2']"),
        ("max", "['2', '2']"),
        ("cast", "['n + 2', '6']"),
        ("mod", "['n % 2', '0']"),
    ],
)
def test_shape_arithmetic(build: str, expected: str) -> None:
    assert _known(build) == expected


def test_bitcast() -> None:
    x = np.array([0, 1, -1, 2**31 - 1, -(2**31)], "i4")
    np.testing.assert_array_equal(
        run_op("bitcast", x, attrs=CastAttrs(F32)).view("i4"), x.view("f4").view("i4")
    )
    np.testing.assert_array_equal(
        run_op("bitcast", SPECIAL.astype("f2"), attrs=CastAttrs(I16)),
        SPECIAL.astype("f2").view("i2"),
    )
    truth = np.array([True, False])
    np.testing.assert_array_equal(run_op("bitcast", truth, attrs=CastAttrs(I8)), [1, 0])
    np.testing.assert_array_equal(
        run_op("bitcast", x[:2].astype("u1"), attrs=CastAttrs(BOOL)), [0, 1]
    )
    with pytest.raises(TypeCheckError, match="differ in size"):
        run_op("bitcast", x, attrs=CastAttrs(F64))
