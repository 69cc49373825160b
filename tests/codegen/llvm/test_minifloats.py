"""Every code of a small float to f32, and awkward floats back, against `ml_dtypes`."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pytest

from tests.codegen.llvm.every_expression import at, store_all
from tests.codegen.native_func import assert_same, llvm_text, run_native
from tests.for_each import for_each
from tilewright.arith.expr import Cast, Expr
from tilewright.codegen.objects.compile import compile_assembly
from tilewright.core.dtypes import (
    BOOL,
    F8E4M3FN,
    F16,
    F32,
    F64,
    I8,
    I64,
    INT4,
    SMALL_FLOATS,
    SMALL_INTEGERS,
    U64,
    DType,
)
from tilewright.ir.scalar_semantics import cast_value, quiet
from tilewright.target.registry import CPUS

SMALL = (*SMALL_FLOATS, *SMALL_INTEGERS)
LANES = 8
HALVES = np.arange(1 << 16, dtype=np.uint32).astype(np.uint16).view(np.float16)


def _singles() -> np.ndarray:
    """All f16, their neighbours in f32, powers of two, and patterns from everywhere."""
    halves = HALVES[np.isfinite(HALVES)].astype("f4")
    beside = [np.nextafter(halves, np.float32(to)) for to in (np.inf, -np.inf)]
    powers = np.exp2(np.arange(-149.0, 128.0)).astype("f4")
    patterns = np.random.default_rng(0).integers(0, 1 << 32, 1 << 17).astype(np.uint32)
    edges = np.array([0, 1, 0x3FFFFF, 0x400000, 0x400001, 0x600000, 0x7FFFFF, 0x800000], np.uint32)
    special = np.array([np.nan, -np.nan, np.inf, -np.inf], "f4")
    parts = [halves, *beside, powers, powers * np.float32(1.5), patterns.view("f4")]
    return np.concatenate([*parts, edges.view("f4"), special])


def _values(dtype: DType) -> np.ndarray:
    with quiet():
        if dtype == F64:
            wide = _singles().astype("f8")
            return np.concatenate([wide, np.nextafter(wide, np.inf), np.nextafter(wide, -np.inf)])
        if dtype == F32:
            return _singles()
    if dtype == F16:
        return HALVES
    if dtype == I64:
        ends = np.random.default_rng(1).integers(-(2**62), 2**62, 1000)
        return np.concatenate([np.arange(-70000, 70000), ends])
    return np.tile(np.arange(1 << dtype.bits, dtype=np.uint8), LANES).view(dtype.numpy)


def _check(source: DType, targets: Sequence[DType], lanes: int) -> None:
    x = _values(source)
    x = np.concatenate([x, x[: -len(x) % LANES]])
    casts: list[Expr] = [Cast(target, at("x", source, lanes)) for target in targets]
    found = {f"o{i}": np.zeros(len(x), target.numpy) for i, target in enumerate(targets)}
    run_native(store_all(casts, source, len(x), lanes), {"x": x, "y": x, **found})
    with quiet():
        for target, array in zip(targets, found.values(), strict=True):
            assert_same(array, cast_value(x, target), f"{source} to {target}")


@for_each("lanes", [1, LANES])
@for_each("source", SMALL, ids=str)
def test_every_code_is_converted(source: DType, lanes: int) -> None:
    _check(source, [F32, F16, F64, I8, U64, BOOL], lanes)


@pytest.mark.parametrize("source", [F16, F32, F64, I64], ids=str)
def test_numbers_are_rounded_to_the_nearest(source: DType) -> None:
    _check(source, SMALL, LANES)


@pytest.mark.parametrize("source", [F8E4M3FN, INT4], ids=str)
def test_from_small_to_small(source: DType) -> None:
    _check(source, [d for d in SMALL if d != source], LANES)


@for_each("small", SMALL_FLOATS, ids=str)
def test_every_number_survives_a_round_trip(small: DType) -> None:
    codes = _values(small)
    numbers = ~np.isnan(codes.astype("f4"))
    wide = np.zeros(len(codes), "f4")
    there = store_all([Cast(F32, at("x", small, 1))], small, len(codes), 1)
    run_native(there, {"x": codes, "y": codes, "o0": wide})
    back = store_all([Cast(small, at("x", F32, 1))], F32, len(codes), 1)
    again = np.zeros_like(codes)
    run_native(back, {"x": wide, "y": wide, "o0": again})
    np.testing.assert_array_equal(again.view("u1")[numbers], codes.view("u1")[numbers])


@for_each("small", [d for d in SMALL if d.bits < 8], ids=str)
def test_bits_above_an_element_are_not_read(small: DType) -> None:
    clean = np.arange(1 << small.bits, dtype=np.uint8)
    dirty = (clean | (0xFF << small.bits & 0xFF)).astype(np.uint8)
    func = store_all([Cast(F32, at("x", small, 1))], small, len(clean), 1)
    results = []
    for x in (clean.view(small.numpy), dirty.view(small.numpy)):
        results.append(np.zeros(len(clean), "f4"))
        run_native(func, {"x": x, "y": x, "o0": results[-1]})
    np.testing.assert_array_equal(*results)


@for_each("target", ["x86-64-v3", "x86-64-v4", "aarch64"])
@for_each("small", SMALL, ids=str)
def test_vectors_of_every_machine_convert_without_calls(small: DType, target: str) -> None:
    exprs = [Cast(F32, at("x", small, 16))]
    down = store_all([Cast(small, at("x", F32, 16))], F32, 16, 16)
    for func in (store_all(exprs, small, 16, 16), down):
        text = compile_assembly(llvm_text(func), CPUS[target])
        assert not re.findall(r"^\s+(?:callq?|bl)\s+(\w+)", text, re.MULTILINE)
