"""Results that are no normal numbers become zeros where the architecture is slow with them."""

from __future__ import annotations

import ctypes

import llvmlite.binding as llvm
import numpy as np
import pytest

from tests.differential.native import check_native
from tilewright.codegen.function import ModuleText
from tilewright.codegen.llvm import compile_assembly
from tilewright.codegen.underflow import emit_flushing, flushes_results
from tilewright.core.dtypes import F32
from tilewright.ir.types import tensor
from tilewright.ops.build import GraphBuilder
from tilewright.target.cpu import host, resolve

PARAMS = (("%a", "ptr"), ("%b", "ptr"))


def test_the_mode_is_set_around_the_body_and_restored() -> None:
    module = ModuleText()
    module.declare("body", "i32 (ptr, ptr)")
    emit_flushing(module, "x86_64", "outside", "body", PARAMS)
    text = compile_assembly(module.text(), resolve("x86-64-v2"))
    words = [line.split()[0] for line in text.splitlines() if line.startswith("\t")]
    order = [word for word in words if "mxcsr" in word or word.startswith("call")]
    assert [word.lstrip("v") for word in order] == ["stmxcsr", "ldmxcsr", "callq", "ldmxcsr"]


def test_the_module_is_valid() -> None:
    module = ModuleText()
    module.declare("body", "i32 (ptr, ptr)")
    emit_flushing(module, "x86_64", "outside", "body", PARAMS)
    llvm.parse_assembly(module.text()).verify()


@pytest.mark.parametrize("threads", [1, 2])
def test_small_results(threads: int) -> None:
    """Inputs keep their values; results are zero or exact, all in the same way."""
    g = GraphBuilder("f")
    x = g.input("x", tensor(F32, 4000))
    y = g.input("y", tensor(F32, 4000))
    graph = g.graph(g.add("mul", x, y))
    tiny = np.finfo(np.float32).smallest_normal
    small = np.full(4000, tiny / 4, np.float32)
    model = check_native(graph, {"x": small, "y": np.ones(4000, np.float32)}, threads=threads)
    down = model(x=small, y=np.full(4000, 2, np.float32))
    up = model(x=small, y=np.full(4000, 8, np.float32))
    assert np.all(up == 2 * tiny)
    assert np.all(down == (0 if flushes_results(host().architecture) else tiny / 2))


def test_a_run_leaves_the_callers_mode_alone() -> None:
    g = GraphBuilder("f")
    x = g.input("x", tensor(F32, 4))
    check_native(g.graph(g.add("exp", x)), {"x": np.ones(4, np.float32)})
    tiny = np.finfo(np.float32).smallest_subnormal
    assert np.array([tiny]) * np.float32(1) == tiny
    assert ctypes.c_float(tiny).value > 0
