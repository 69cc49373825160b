"""Conversions; their values are compared for every pair of types in `test_expressions`."""

from __future__ import annotations

import re

import ml_dtypes
import numpy as np
import pytest

from tests.codegen.llvm.every_expression import at, binaries, casts, store_all, unaries
from tests.codegen.native_func import check_native_func, llvm_text, run_native
from tests.for_each import for_each
from tilewright.arith.expr import Broadcast, Cast, Load, cast, const
from tilewright.arith.vector import Ramp
from tilewright.codegen.cpu.parallel import emit_func
from tilewright.codegen.llvm.builder import ModuleBuilder
from tilewright.codegen.objects.compile import compile_assembly, compile_object
from tilewright.core.dtypes import BF16, DTYPES, F16, F32, F64, DType
from tilewright.ir.loop.nodes import Buffer, Func, Store
from tilewright.ir.loop.text import parse_func
from tilewright.target.registry import CPUS

# What a C library has; anything else would have to come with the compiler of the machine.
LIBM = {"fmod", "fmodf"}
# What bf16 is converted from and to.
OTHERS = [d for d in DTYPES.values() if d.kind not in ("complex", "string") and d != BF16]


@pytest.mark.parametrize("target", ["x86-64-v3", "x86-64-v4", "aarch64"])
@pytest.mark.parametrize("dtype", [F16, BF16, F32, F64], ids=str)
def test_nothing_but_the_c_library_is_called(dtype: DType, target: str) -> None:
    a, b = at("x", dtype, 8), at("y", dtype, 8)
    exprs = [*binaries(dtype, a, b), *unaries(dtype, a, b), *casts(dtype, a)]
    text = compile_assembly(llvm_text(store_all(exprs, dtype, 8, 8)), CPUS[target])
    called = set(re.findall(r"^\s+(?:callq?|bl)\s+(\w+)", text, re.MULTILINE))
    assert called <= LIBM


@for_each("lanes", [1, 4])
@for_each("target", [BF16, F16], ids=str)
def test_narrowing_rounds_once(target: DType, lanes: int) -> None:
    """Values just beside the middle of two neighbours: f32 in between would round to the tie."""
    lower = np.array([1.0, 1.25, 3.0, 0.1, 6e-5, 6e-7, 100.0, 60000.0]).astype(target.numpy)
    upper = (lower.view(np.uint16) + 1).view(target.numpy)
    even = np.where(lower.view(np.uint16) % 2 == 0, lower, upper)
    middle = (lower.astype("f8") + upper.astype("f8")) / 2
    x = np.concatenate([middle, middle * (1 + 1e-15), middle * (1 - 1e-15)])
    x, expected = np.concatenate([x, -x]), np.concatenate([even, upper, lower])
    found = np.zeros(len(x), target.numpy)
    func = store_all([Cast(target, at("x", F64, lanes))], F64, len(x), lanes)
    run_native(func, {"x": x, "y": x, "o0": found})
    np.testing.assert_array_equal(found, np.concatenate([expected, -expected]))


def test_every_bf16_goes_to_f32_and_back() -> None:
    every = np.arange(1 << 16, dtype=np.uint32).astype(np.uint16).view(ml_dtypes.bfloat16)
    there = store_all([Cast(F32, at("x", BF16, 8))], BF16, len(every), 8)
    check_native_func(there, {"x": every, "y": every, "o0": np.zeros(len(every), "f4")})
    wide = every.astype("f4")
    back = store_all([Cast(BF16, at("x", F32, 8))], F32, len(every), 8)
    check_native_func(back, {"x": wide, "y": wide, "o0": np.zeros_like(every)})


@for_each(
    ("target", "instruction"), [("sapphirerapids", "vcvtneps2bf16"), ("neoverse-v1", "bfcvtn")]
)
def test_the_machines_own_rounding_is_used_where_it_may_be(target: str, instruction: str) -> None:
    func = store_all([Cast(BF16, at("x", F32, 16))], F32, 16, 16)
    for native in ("", CPUS[target].architecture):
        module = ModuleBuilder(native_bf16=native)
        emit_func(module, func, ())
        assert (instruction in compile_assembly(module.text(), CPUS[target])) == bool(native)


@for_each("target", [name for name, t in CPUS.items() if "x86" in t.triple])
def test_nothing_is_rounded_to_bf16_by_llvm(target: str) -> None:
    """It would flush subnormal numbers, or call a function that the machine may not have."""
    func = parse_func("""
        func @first(x: bf16[64], out y: i64[8], out z: bf16[8]) {
          alloc peak: bf16[1]
          for i in serial(8) {
            peak[0] = -inf:bf16
            for j in serial(8) { peak[0] = max(peak[0], x[i * 8 + j]) }
            y[i] = 8
            for j in serial(8) { y[i] = min(y[i], select(x[i * 8 + j] == peak[0], j, 8)) }
            z[i] = select(peak[0] < x[i], peak[0], -peak[0])
          }
        }
        """)
    text = compile_assembly(llvm_text(func), CPUS[target])
    assert "vcvtneps2bf16" not in text
    assert "call" not in text


@for_each("lanes", [16, 32, 64, 128])
def test_narrowing_vectors_that_are_part_zero(lanes: int) -> None:
    """LLVM's own conversion dies of them, where the machine has an instruction for it."""
    module = ModuleBuilder(native_bf16="x86_64")
    base = Ramp(const(0), 1, lanes)
    load = Load("x", (base,), F32, mask=base < Broadcast(const(8), lanes))
    narrowed = Cast(BF16, load * load)
    func = store_all([narrowed], F32, lanes, lanes)
    emit_func(module, func, ())
    text = compile_assembly(module.text(), CPUS["sapphirerapids"])
    assert "vcvtneps2bf16" in text


@pytest.mark.parametrize("target", [name for name, t in CPUS.items() if "x86" in t.triple])
def test_every_pair_with_bf16_and_a_rest_of_one_element(target: str) -> None:
    """LLVM moves one lane of a vector as a scalar, for which a machine may have no register."""
    lanes = 4 * CPUS[target].vector_bits // BF16.bits
    index = Ramp(const(0), 1, lanes)
    mask = index < Broadcast(const(lanes * 3 // 4 + 1), lanes)
    module = ModuleBuilder(native_bf16="x86_64" if CPUS[target].rounds_to_bf16 else "")
    pairs = [(BF16, BF16), *((BF16, d) for d in OTHERS), *((d, BF16) for d in OTHERS)]
    for old, new in pairs:
        params = (Buffer("x", old, (const(lanes),)), Buffer("y", new, (const(lanes),)))
        store = Store("y", (index,), cast(new, Load("x", (index,), old, mask)), mask)
        emit_func(module, Func(f"from_{old}_to_{new}", params, ("y",), store), ())
    assert compile_object(module.text(), CPUS[target])
