"""Every kind of expression × dtype × lanes: machine code equals the interpreter."""

from __future__ import annotations

import numpy as np
import pytest

from tests.codegen.llvm.every_expression import (
    DTYPES,
    at,
    awkward,
    binaries,
    casts,
    choices,
    has_fma,
    outputs_of,
    pairs,
    store_all,
    unaries,
)
from tests.codegen.native_func import assert_same, both, check_native_func
from tests.for_each import for_each
from tilewright.arith.expr import Binary, Call, Expr, Load, Var, const
from tilewright.arith.vector import Ramp
from tilewright.codegen.cpu.parallel import emit_func
from tilewright.codegen.llvm.builder import FunctionBuilder, ModuleBuilder
from tilewright.codegen.objects.compile import compile_assembly
from tilewright.core.dtypes import F32, I64, DType
from tilewright.core.errors import CodegenError
from tilewright.finalize.vectorize import vectorize
from tilewright.ir.loop.nodes import Buffer, For, Func, Store
from tilewright.ir.loop.text import parse_func
from tilewright.target.registry import CPUS

LANES = (1, 8)


def _check(dtype: DType, exprs: list[Expr], lanes: int) -> None:
    x, y = pairs(dtype, lanes)
    func = store_all(exprs, dtype, len(x), lanes)
    found, expected = both(func, {"x": x, "y": y, **outputs_of(func)})
    for (name, a), e in zip(found.items(), exprs, strict=True):
        if has_fma(e) and dtype.bits == 16:
            np.testing.assert_allclose(a.astype("f8"), expected[name].astype("f8"), rtol=1e-2)
        else:
            assert_same(a, expected[name], str(e))


@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_operators(dtype: DType, lanes: int) -> None:
    a, b = at("x", dtype, lanes), at("y", dtype, lanes)
    _check(dtype, [*binaries(dtype, a, b), *unaries(dtype, a, b)], lanes)


@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_conversions_and_choices(dtype: DType, lanes: int) -> None:
    a, b = at("x", dtype, lanes), at("y", dtype, lanes)
    _check(dtype, [*casts(dtype, a), *choices(dtype, a, b, lanes)], lanes)


def test_scalar_operands_are_broadcast() -> None:
    x = awkward(F32)[:16]
    vector = Load("x", (Ramp(const(0), 1, 16),), F32)
    scalar = Load("y", (const(0),), F32)
    value = Binary("sub", Binary("mul", scalar, const(2.0, F32)), vector)
    params = tuple(Buffer(n, F32, (const(16),)) for n in ("x", "y", "o"))
    func = Func("f", params, ("o",), Store("o", (Ramp(const(0), 1, 16),), value))
    check_native_func(func, {"x": x, "y": x[::-1].copy(), "o": np.zeros(16, "f4")})


def test_elements_wrap_where_indices_may_not() -> None:
    top = np.iinfo(np.int64).max
    x = np.array([top, top - 1, 0, -top - 1])
    text = """
    func @f(x: i64[4], out y: i64[4]) {
      for i in serial(4) { if x[i] + 1 < x[i] { y[i] = x[i] * 3 } else { y[i] = 5 } }
    }"""
    check_native_func(parse_func(text), {"x": x, "y": np.zeros(4, np.int64)})


def test_unsigned_division_of_nonnegative_indices() -> None:
    text = """
    func @f(x: i64[A * B], out y: i64[A * B]) {
      for i in serial(A * B) { y[i] = x[i // B * B + (B - 1 - i % B)] }
    }"""
    func = parse_func(text)
    x = np.arange(35)
    check_native_func(func, {"x": x, "y": np.zeros_like(x)}, {"A": 5, "B": 7})
    check_native_func(func, {"x": x[:0], "y": x[:0]}, {"A": 5, "B": 0})


def test_what_has_no_instruction_is_refused() -> None:
    def emit(value: Expr) -> None:
        from tilewright.codegen.llvm.expressions import ExprEmitter

        fn = FunctionBuilder(ModuleBuilder(), "f", [])
        ExprEmitter(fn, {"x": "%x"}, {}).value(value)

    x = Var("x", F32)
    with pytest.raises(CodegenError, match=r"codegen.function.*exp"):
        emit(Call("exp", (x,), F32))
    with pytest.raises(CodegenError, match=r"codegen.operator.*floordiv"):
        emit(Binary("floordiv", x, x))
    with pytest.raises(CodegenError, match=r"codegen.variable.*nowhere"):
        emit(Var("nowhere"))


def test_an_index_vector_in_arithmetic() -> None:
    lanes = Ramp(Var("i") * 4, 1, 4)
    value = Binary("floordiv", Binary("mul", lanes, const(7)), const(3))
    func = Func(
        "f",
        (Buffer("y", I64, (const(8),)),),
        ("y",),
        For("i", const(2), "serial", Store("y", (lanes,), value)),
    )
    check_native_func(func, {"y": np.zeros(8, np.int64)})


@for_each(("other", "instructions"), [("2.0", 1), ("b[i]", 3)])
def test_extrema_on_x86_take_few_instructions(other: str, instructions: int) -> None:
    """Its own maximum loses a NaN that comes first: only there, and only if one may, is it kept."""
    func = parse_func(
        f"""
        func @f(a: f32[16], b: f32[16], out y: f32[16]) {{
          for i in vectorize(16) {{ y[i] = max(a[i], {other}) }}
        }}"""
    )
    module = ModuleBuilder(orders_zeros=False)
    emit_func(module, vectorize(func), ())
    text = compile_assembly(module.text(), CPUS["x86-64-v4"])
    lines = [line.split("\t")[1] for line in text.splitlines() if line.startswith("\tv")]
    moves = ("vmovups", "vbroadcastss", "vzeroupper")
    assert sum(word not in moves for word in lines) == instructions, text


EXTREMA = (
    "max(a[i], 0.0)",
    "min(1.0, a[i])",
    "max(a[i], b[i])",
    "min(b[i], max(a[i], -1.0))",
    "max(a[i], (nan:f32))",
    "min(max(min(a[i], b[i]), b[i]) + 1.0, a[i])",
)


@for_each("formula", EXTREMA)
def test_extrema_keep_nan(formula: str) -> None:
    func = parse_func(
        f"""
        func @f(a: f32[36], b: f32[36], out y: f32[36]) {{
          for i in serial(36) {{ y[i] = {formula} }}
        }}"""
    )
    special = np.array([np.nan, np.inf, -np.inf, -1.5, 0.0, 2.5], np.float32)
    pairs = {"a": np.repeat(special, 6), "b": np.tile(special, 6)}
    check_native_func(func, {**pairs, "y": np.zeros(36, np.float32)})
