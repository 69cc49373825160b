"""Blocks of sums in AMX's registers: their steps together are a matrix product."""

from __future__ import annotations

import ctypes

import ml_dtypes
import numpy as np
import pytest
from llvmlite import binding

from tilewright.ir.loop.interp.run import run_func
from tilewright.runtime.cpu.host_features import check_target
from tilewright.schedule.intrin.cpu.amx import AMX, AMX_STATE, COLUMNS, DEPTH, ROWS, amx_names
from tilewright.schedule.intrin.match import pattern_of
from tilewright.target.host import host

HAS_AMX = host().bf16_gemm == "amx"


def _operands(rows: int, steps: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows of A, B in pairs, and what their product is."""
    rng = np.random.default_rng(rows + steps)
    a = rng.standard_normal((rows, DEPTH * steps)).astype(ml_dtypes.bfloat16)
    b = rng.standard_normal((DEPTH * steps, COLUMNS)).astype(ml_dtypes.bfloat16)
    pairs = b.reshape(-1, 2, COLUMNS).transpose(0, 2, 1).copy()
    return a, pairs, a.astype(np.float32) @ b.astype(np.float32)


@pytest.mark.parametrize("rows", [ROWS, 2 * ROWS])
def test_start_steps_and_store_are_a_product(rows: int) -> None:
    zero, step, store = amx_names(rows)
    a, b, expected = _operands(rows, 3)
    sums, out = np.full((2, rows, COLUMNS), np.nan, np.float32)
    run_func(pattern_of(zero), {"c": sums})
    for k in range(3):
        part = slice(k * DEPTH // 2, (k + 1) * DEPTH // 2)
        columns = np.ascontiguousarray(a[:, k * DEPTH : (k + 1) * DEPTH])
        run_func(pattern_of(step), {"a": columns, "b": b[part].copy(), "c": sums})
    run_func(pattern_of(store), {"a": sums, "c": out})
    np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-4)


def test_all_hold_the_same_registers() -> None:
    assert {row.register_operand for row in AMX.values()} == {"a", "c"}
    assert all(row.state is AMX_STATE and row.strided for row in AMX.values())


@pytest.mark.skipif(not HAS_AMX, reason="no AMX")
@pytest.mark.parametrize("rows", [ROWS, 2 * ROWS])
def test_the_instructions_compute_the_same(rows: int) -> None:
    check_target({"triple": host().triple, "features": host().features})
    a, b, expected = _operands(rows, 3)
    out = np.zeros((rows, COLUMNS), np.float32)
    names = amx_names(rows)
    calls = "\n".join(
        f"call void @tw.{names[1]}(ptr %a{k}, i64 {2 * DEPTH * 3}, ptr %b{k}, i64 {4 * COLUMNS}, "
        f"ptr null, i64 0)"
        for k in range(3)
    )
    places = "\n".join(
        f"%a{k} = getelementptr i8, ptr %a, i64 {2 * DEPTH * k}\n"
        f"%b{k} = getelementptr i8, ptr %b, i64 {2 * DEPTH * COLUMNS * k}"
        for k in range(3)
    )
    text = f"""
    {AMX_STATE.llvm}
    {"".join(AMX[name].llvm for name in names)}
    define void @product(ptr %a, ptr %b, ptr %c) {{
      call void @tw.amx.begin()
      {places}
      call void @tw.{names[0]}(ptr null, i64 0)
      {calls}
      call void @tw.{names[2]}(ptr null, i64 0, ptr %c, i64 {4 * COLUMNS})
      call void @tw.amx.end()
      ret void
    }}
    """
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    machine = binding.Target.from_triple(host().triple).create_target_machine(
        cpu=host().cpu, features=",".join(host().features), opt=2
    )
    engine = binding.create_mcjit_compiler(binding.parse_assembly(text), machine)
    engine.finalize_object()
    product = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3)(engine.get_function_address("product"))
    product(a.ctypes.data, b.ctypes.data, out.ctypes.data)
    np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-4)
