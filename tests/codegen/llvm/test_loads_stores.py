"""Loads and stores: contiguous, strided, gathered; masks that are all off; empty buffers."""

from __future__ import annotations

import numpy as np

from tests.codegen.native_func import NativeFunc, both, check_native_func, llvm_text
from tests.for_each import for_each
from tilewright.arith.expr import Binary, Broadcast, Expr, Load, Var, const
from tilewright.arith.vector import Ramp
from tilewright.codegen.objects.compile import compile_object
from tilewright.core.dtypes import BF16, BOOL, F16, F32, F64, I8, I64, DType
from tilewright.ir.loop.nodes import Buffer, For, Func, Store
from tilewright.ir.loop.text import parse_func
from tilewright.target.registry import CPUS

N = Var("N")
DTYPES = (BOOL, I8, I64, F16, BF16, F32, F64)


def _array(dtype: DType, n: int) -> np.ndarray:
    values = np.random.default_rng(0).integers(0, 100, n)
    return (values % 2 == 0) if dtype == BOOL else values.astype(dtype.numpy)


def _copy(dtype: DType, source: Expr, target: Expr, loads: bool) -> Func:
    """`y[target] = x[source]` for the lanes below N, the mask on the load or on the store."""
    value = Load("x", (source,), dtype, BELOW if loads else None)
    store = Store("y", (target,), value, None if loads else BELOW)
    sizes = {"x": N if loads else N + 3, "y": N + 3 if loads else N}
    params = tuple(Buffer(name, dtype, (size,)) for name, size in sizes.items())
    return Func("f", params, ("y",), For("i", (N + 3) // 4, "serial", store))


LANES = Ramp(Var("i") * 4, 1, 4)
BACK = Ramp(N - 1 - Var("i") * 4, -1, 4)
# Inside for the lanes below N, far outside for the others.
COMPUTED = Binary("sub", Broadcast(N - 1, 4), LANES)
BELOW = Binary("lt", LANES, Broadcast(N, 4))


@for_each("dtype", DTYPES, ids=str)
@for_each("loads", [True, False], ids=["load", "store"])
@for_each("index", [LANES, BACK, COMPUTED], ids=["contiguous", "back", "gather"])
def test_masked_lanes_touch_nothing(index: Expr, loads: bool, dtype: DType) -> None:
    """The unmasked side is longer by the lanes that are off; the masked side ends where it ends."""
    func = _copy(dtype, index, LANES, loads=True) if loads else _copy(dtype, LANES, index, False)
    native = NativeFunc(func)
    for n in (0, 1, 4, 5, 11):
        x = _array(dtype, n if loads else n + 3)
        y = np.full(n + 3 if loads else n, 1).astype(dtype.numpy)
        native({"x": x, "y": y}, {"N": n})
        np.testing.assert_array_equal(y[:n], x[:n] if index is LANES else x[:n][::-1])
        assert not y[n : -(-n // 4) * 4].astype(bool).any()
    native.close()


def test_a_masked_scalar_load_never_reads_an_empty_buffer() -> None:
    func = parse_func(
        "func @f(x: f32[N], out y: f32[4]) { for i in serial(4) { y[i] = x[i ? i < N] } }"
    )
    native = NativeFunc(func)
    y = np.full(4, 7, np.float32)
    native._run(None, y.ctypes.data, 0)  # not even an address
    np.testing.assert_array_equal(y, 0)
    native.close()


def test_bf16_is_moved_as_bits_under_a_mask() -> None:
    """Of a vector that has to be taken apart, one lane would be a scalar of bf16: LLVM dies."""
    func = parse_func(
        """
        func @f(x: bf16[128], out y: bf16[128]) {
          y[ramp(0, 1, 128) ? ramp(0, 1, 128) < broadcast(97, 128)] =
            x[ramp(0, 1, 128) ? ramp(0, 1, 128) < broadcast(97, 128)]
        }
        """
    )
    text = llvm_text(func)
    assert "masked.load.v128i16" in text
    assert "masked.store.v128i16" in text
    assert compile_object(text, CPUS["sapphirerapids"])


@for_each("stride", [1, 2])
@for_each("lanes", [4, 16])
def test_one_mask_for_all_lanes_never_reads_an_empty_buffer(lanes: int, stride: int) -> None:
    load = Load("x", (Ramp(Var("i") * lanes * stride, stride, lanes),), F32, Var("i") < N)
    store = Store("y", (Ramp(Var("i") * lanes, 1, lanes),), load)
    params = (Buffer("x", F32, (N * lanes * stride,)), Buffer("y", F32, (const(2 * lanes),)))
    native = NativeFunc(Func("f", params, ("y",), For("i", const(2), "serial", store)))
    y = np.full(2 * lanes, 7, np.float32)
    native._run(None, y.ctypes.data, 0)  # not even an address
    np.testing.assert_array_equal(y, 0)
    x = np.arange(1, lanes * stride + 1, dtype=np.float32)
    native({"x": x, "y": y}, {"N": 1})
    np.testing.assert_array_equal(y, [*x[::stride], *np.zeros(lanes)])
    native.close()


def test_a_gather_with_no_lane_on_never_reads_an_empty_buffer() -> None:
    mask = Binary("lt", Broadcast(const(0), 4), Broadcast(N, 4))
    load = Load("x", (Binary("mul", LANES, const(3)),), F32, mask)
    body = For("i", const(1), "serial", Store("y", (LANES,), load))
    func = Func("f", (Buffer("x", F32, (N,)), Buffer("y", F32, (const(4),))), ("y",), body)
    native = NativeFunc(func)
    y = np.full(4, 7, np.float32)
    native._run(None, y.ctypes.data, 0)
    np.testing.assert_array_equal(y, 0)
    native.close()


def test_scattered_lanes_write_in_order() -> None:
    index = Binary("floordiv", LANES, const(2))
    body = For("i", const(2), "serial", Store("y", (index,), Load("x", (LANES,), F32)))
    params = (Buffer("x", F32, (const(8),)), Buffer("y", F32, (const(4),)))
    check_native_func(
        Func("f", params, ("y",), body),
        {"x": np.arange(8, dtype="f4"), "y": np.zeros(4, "f4")},
    )


def test_what_waits_stays_in_memory() -> None:
    func = parse_func(
        """
        func @f(x: f32[24], out y: f32[9]) {
          alloc t: f32[9] @volatile
          t[8] = 1.0
          t[ramp(0, 1, 8)] = broadcast(0.0, 8)
          for i in serial(3) { t[ramp(0, 1, 8)] = t[ramp(0, 1, 8)] + x[ramp(i * 8, 1, 8)] }
          y[ramp(0, 1, 8)] = t[ramp(0, 1, 8)]
          y[8] = t[8]
        }
        """
    )
    text = llvm_text(func)
    assert text.count("store volatile <8 x float>") == 2
    assert text.count("load volatile <8 x float>") == 2
    assert text.count("store volatile float") == 1
    x = np.arange(24, dtype=np.float32)
    found, expected = both(func, {"x": x, "y": np.zeros(9, np.float32)})
    np.testing.assert_array_equal(found["y"], expected["y"])
    np.testing.assert_array_equal(found["y"], [*x.reshape(3, 8).sum(0), 1])


@for_each("lanes", [2, 4, 8, 16])
@for_each("stride", [2, 3, 4, 5, -2])
@for_each("dtype", ["f32", "i8", "bool"])
def test_vectors_with_gaps(dtype: str, stride: int, lanes: int) -> None:
    """The second vector ends with the last element of its buffer."""
    span = (2 * lanes - 1) * abs(stride) + 1
    index = f"ramp({0 if stride > 0 else span - 1} + i * {lanes * stride}, {stride}, {lanes})"
    func = parse_func(
        f"""
        func @f(a: {dtype}[{span}], out c: {dtype}[{2 * lanes}]) {{
          for i in serial(2) {{
            c[ramp(i * {lanes}, 1, {lanes})] = a[{index}]
          }}
        }}
        """
    )
    kind = {"f32": np.float32, "i8": np.int8, "bool": np.bool_}[dtype]
    a = (np.random.default_rng(0).random(span) * 99).astype(kind)
    arrays = {"a": a, "c": np.zeros(2 * lanes, kind)}
    found, expected = both(func, arrays)
    np.testing.assert_array_equal(found["c"], expected["c"])
    np.testing.assert_array_equal(found["c"], a[::stride])


def test_evenly_spaced_lanes_are_stored_one_by_one() -> None:
    store = Store("y", (Ramp(Var("i") * 20, 5, 4),), Load("x", (Ramp(Var("i") * 4, 1, 4),), F32))
    params = (Buffer("x", F32, (const(12),)), Buffer("y", F32, (const(60),)))
    func = Func("f", params, ("y",), For("i", const(3), "serial", store))
    x = _array(F32, 12)
    y = np.zeros(60, np.float32)
    NativeFunc(func)({"x": x, "y": y}, {})
    np.testing.assert_array_equal(y.reshape(3, 4, 5)[..., 0].reshape(-1), x)
    assert np.count_nonzero(y.reshape(12, 5)[:, 1:]) == 0
