from __future__ import annotations

from tilewright.arith.expr import Load, const
from tilewright.codegen.gpu.synchronization import BARRIER, barrier
from tilewright.codegen.llvm.builder import FunctionBuilder, ModuleBuilder
from tilewright.codegen.llvm.expressions import ExprEmitter
from tilewright.core.dtypes import F32


def test_what_was_loaded_before_a_barrier_is_loaded_again() -> None:
    fn = FunctionBuilder(ModuleBuilder(), "f", [("%x", "ptr")])
    emitter = ExprEmitter(fn, {}, {"x": "%x"})
    element = Load("x", (const(3),), F32)
    assert emitter.value(element) == emitter.value(element)
    first = emitter.value(element)
    barrier(emitter)
    assert emitter.value(element) != first
    assert sum(BARRIER in line for line in fn.lines) == 1
