from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.codegen.gpu.host_threads import run_launches
from tests.codegen.gpu.ptxas import assemble
from tests.finalize.kernel_steps import run
from tilewright.codegen.gpu.nvptx import emit_launches
from tilewright.codegen.llvm.builder import ModuleBuilder
from tilewright.codegen.objects.compile import compile_assembly
from tilewright.core.errors import CodegenError
from tilewright.ir.loop.nodes import Func
from tilewright.ir.loop.parse import parse_func
from tilewright.target.registry import resolve_gpu

STEPS = {"sum": ("0", "{a} + {b}"), "max": ("{low}", "max({a}, {b})")}
LOW = {
    "f32": "(-inf:f32)",
    "f64": "(-inf:f64)",
    "i64": "-99",
    "i32": "-99:i32",
    "f16": "(-inf:f16)",
}


def _combining(rows: int, lanes: int, dtype: str, op: str) -> Func:
    zero = {"f32": "0.0", "f64": "0.0:f64", "i64": "0", "i32": "0:i32", "f16": "0.0:f16"}[dtype]
    start = zero if op == "sum" else LOW[dtype]
    step = STEPS[op][1].format(a="s[0]", b="part[0]")
    return parse_func(f"""
        func @k(x: {dtype}[{rows * lanes}], out y: {dtype}[{rows * lanes}]) {{
          for b in grid(1) {{
            alloc part: {dtype}[1] @register
            alloc s: {dtype}[1] @register
            for r in thread({rows}) {{
              for t in thread({lanes}) {{ part[0] = x[r * {lanes} + t] }}
            }}
            for r2 in thread({rows}) {{
              for k in allreduce({lanes}) {{
                if k == 0 {{ s[0] = {start} }}
                s[0] = {step}
              }}
            }}
            for r3 in thread({rows}) {{
              for u in thread({lanes}) {{ y[r3 * {lanes} + u] = s[0] }}
            }}
          }}
        }}
    """)


def _expected(x: np.ndarray, rows: int, op: str) -> np.ndarray:
    found = getattr(x.reshape(rows, -1), op)(axis=1, keepdims=True)
    return np.broadcast_to(found, (rows, x.size // rows)).reshape(-1)


# Every type with every size, and each of both with every operation.
@pytest.mark.parametrize(
    ("rows", "lanes", "op", "dtype"),
    [
        (rows, lanes, ("sum", "max")[(i + j) % 2], dtype)
        for i, (rows, lanes) in enumerate([(1, 4), (3, 8), (2, 32), (1, 64), (1, 256)])
        for j, dtype in enumerate(["f32", "f64", "i64", "i32", "f16"])
    ],
)
def test_every_thread_has_the_result(rows: int, lanes: int, op: str, dtype: str) -> None:
    func = _combining(rows, lanes, dtype, op)
    kind = func.params[0].dtype.numpy
    x = np.random.default_rng(3).integers(-9, 9, rows * lanes).astype(kind)
    expected = _expected(x, rows, op)
    np.testing.assert_array_equal(run(func, {"x": x}, {})["y"], expected)
    arrays = {"x": x, "y": np.zeros_like(x)}
    run_launches(func, arrays, {})
    np.testing.assert_array_equal(arrays["y"], expected)


def test_threads_exchange_by_shuffles(tmp_path: Path) -> None:
    module = ModuleBuilder()
    emit_launches(module, _combining(4, 32, "f32", "sum"), ())
    target = resolve_gpu("cuda")
    text = compile_assembly(module.text(), target)
    assert text.count("shfl.sync.bfly") == 5
    assert "bar.sync" not in text
    assemble(text, tmp_path)


def test_some_of_the_warps_cannot_meet_alone() -> None:
    with pytest.raises(CodegenError, match="cannot synchronize by themselves"):
        emit_launches(ModuleBuilder(), _combining(2, 64, "f32", "sum"), ())


def _scanning(rows: int, lanes: int, dtype: str, steps: int = 2) -> Func:
    """Threads of a row keep what those before them add up to, and so in the next step."""
    zero = {"f32": "0.0", "f64": "0.0:f64", "i64": "0", "i32": "0:i32", "f16": "0.0:f16"}[dtype]
    size, row = rows * lanes * steps, steps * lanes
    return parse_func(f"""
        func @k(x: {dtype}[{size}], out y: {dtype}[{size}], out z: {dtype}[{size}]) {{
          for b in grid(1) {{
            alloc part: {dtype}[1] @register
            alloc before: {dtype}[1] @register
            alloc s: {dtype}[1] @register
            for r in thread({rows}) {{ for t in thread({lanes}) {{ s[0] = {zero} }} }}
            for n in serial({steps}) {{
              for r1 in thread({rows}) {{
                for t1 in thread({lanes}) {{ part[0] = x[r1 * {row} + n * {lanes} + t1] }}
              }}
              for r2 in thread({rows}) {{
                for k in allreduce({lanes}) {{
                  before[0] = s[0]
                  s[0] = s[0] + part[0]
                }}
              }}
              for r3 in thread({rows}) {{
                for u in thread({lanes}) {{
                  y[r3 * {row} + n * {lanes} + u] = before[0]
                  z[r3 * {row} + n * {lanes} + u] = s[0]
                }}
              }}
            }}
          }}
        }}
    """)


@pytest.mark.parametrize(
    ("rows", "lanes", "dtype"),
    [
        *((rows, 8, dtype) for rows, dtype in ((1, "f64"), (3, "i64"), (4, "f16"))),
        *((2, 32, "i32"), (1, 64, "f32"), (1, 256, "i64"), (1, 512, "f32"), (5, 2, "f32")),
    ],
)
def test_threads_keep_what_is_before_them(rows: int, lanes: int, dtype: str) -> None:
    func = _scanning(rows, lanes, dtype)
    kind = func.params[0].dtype.numpy
    x = np.random.default_rng(3).integers(-9, 9, (rows, 2, lanes)).astype(kind)
    sums = np.cumsum(x.reshape(rows, -1), 1, dtype=kind)
    totals = np.repeat(sums.reshape(x.shape)[:, :, -1:], lanes, 2)
    expected = {"y": (sums - x.reshape(rows, -1)).ravel(), "z": totals.ravel()}
    found = run(func, {"x": x.ravel()}, {})
    arrays = {"x": x.ravel(), **{name: np.zeros(x.size, kind) for name in "yz"}}
    run_launches(func, arrays, {})
    for name, right in expected.items():
        np.testing.assert_array_equal(found[name], right)
        np.testing.assert_array_equal(arrays[name], right)


def test_many_warps_are_added_by_lanes() -> None:
    func = _combining(1, 512, "f32", "sum")
    x = np.random.default_rng(3).integers(-9, 9, 512).astype(np.float32)
    arrays = {"x": x, "y": np.zeros_like(x)}
    run_launches(func, arrays, {})
    np.testing.assert_array_equal(arrays["y"], _expected(x, 1, "sum"))
