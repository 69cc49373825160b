"""Laying out the arena at run time gives what the planner itself gives."""

from __future__ import annotations

import ctypes
import random

import llvmlite.binding as llvm

from tilewright.arith.expr import Var
from tilewright.codegen.host.arena_layout import emit_placement
from tilewright.codegen.llvm.builder import ModuleBuilder
from tilewright.codegen.objects.compile import compile_object
from tilewright.passes.memory.plan_memory import RuntimePlacement
from tilewright.runtime.arena_layout import first_fit
from tilewright.target.host import host


def _native(placement: RuntimePlacement, sizes: list[int]) -> tuple[list[int], int]:
    module = ModuleBuilder()
    emit_placement(module, placement)
    text = module.text().replace("define internal i64 @tw_place", "define i64 @tw_place")
    library = llvm.JITLibraryBuilder().add_object_img(compile_object(text, host()))
    linker = llvm.create_lljit_compiler(use_jit_link=True)
    code = library.export_symbol("tw_place").link(linker, "placement")
    given = (ctypes.c_int64 * len(sizes))(*sizes)
    offsets = (ctypes.c_int64 * len(sizes))()
    kind = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)
    total = kind(code["tw_place"])(given, offsets)
    code.close()
    linker.close()
    return list(offsets), total


def test_native_placement_is_the_planners() -> None:
    rng = random.Random(3)
    for _ in range(5):
        count = rng.randrange(1, 30)
        sizes = [64 * rng.randrange(0, 9) for _ in range(count)]
        conflicts = tuple(tuple(j for j in range(i) if rng.random() < 0.4) for i in range(count))
        placement = RuntimePlacement(tuple(Var(f"n{i}") for i in range(count)), conflicts)
        offsets, total = _native(placement, sizes)
        assert offsets == first_fit(sizes, conflicts)
        assert total == max(o + s for o, s in zip(offsets, sizes, strict=True))


def test_native_placement_in_a_row() -> None:
    sizes = [64, 0, 128, 64]
    placement = RuntimePlacement(tuple(Var(f"n{i}") for i in range(4)), None)
    assert _native(placement, sizes) == ([0, 64, 64, 192], 256)
    assert first_fit(sizes, None) == [0, 64, 64, 192]
