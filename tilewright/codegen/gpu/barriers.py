"""The barrier of a thread block."""

from __future__ import annotations

from tilewright.codegen.llvm.emitter import ValueEmitter

BARRIER = "llvm.nvvm.barrier.cta.sync.aligned.all"


def barrier(ex: ValueEmitter) -> None:
    """Emit `barrier.sync` for all threads of a block."""
    ex.fn.module.declare(BARRIER, "void (i32)")
    ex.fn.emit(f"call void @{BARRIER}(i32 0)")
    ex.loads.forget()
