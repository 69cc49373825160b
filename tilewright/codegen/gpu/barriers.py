"""The barrier of a block of threads, and the size of a warp."""

from __future__ import annotations

from tilewright.codegen.llvm.emitter import ValueEmitter

WARP = 32
BARRIER = "llvm.nvvm.barrier.cta.sync.aligned.all"


def barrier(ex: ValueEmitter) -> None:
    """Emit `barrier.sync` for all threads of a block."""
    ex.fn.module.declare(BARRIER, "void (i32)")
    ex.fn.emit(f"call void @{BARRIER}(i32 0)")
    ex.loads.forget()
