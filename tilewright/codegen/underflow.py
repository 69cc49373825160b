"""How results too small to be normal numbers come out of a model: as zeros, where that is faster.

An x86 processor takes some hundred cycles for an operation with a subnormal operand. Such operands
are results of others: the far ends of exponentials, of `x * sigmoid(x)`. So a model runs with these
results flushed to zero. Operands are still taken as they are given: subnormal inputs and weights
keep their values. The caller's mode is restored afterwards; workers take theirs from the thread
that starts them, which is always in a run.
"""

from __future__ import annotations

from collections.abc import Sequence
from string import Template

from tilewright.codegen.function import ModuleText

_NEEDS = {"x86_64": ("llvm.x86.sse.stmxcsr", "llvm.x86.sse.ldmxcsr")}
# Bit 15 of x86's control word flushes results, and no operands.
_FLUSHING = {
    "x86_64": Template("""
define i32 @$name($params) nounwind {
  %mode = alloca i32, align 4
  call void @llvm.x86.sse.stmxcsr(ptr %mode)
  %before = load i32, ptr %mode, align 4
  %flushing = or i32 %before, 32768
  store i32 %flushing, ptr %mode, align 4
  call void @llvm.x86.sse.ldmxcsr(ptr %mode)
  %status = call i32 @$body($params)
  store i32 %before, ptr %mode, align 4
  call void @llvm.x86.sse.ldmxcsr(ptr %mode)
  ret i32 %status
}
""")
}


def flushes_results(architecture: str) -> bool:
    """Whether models for an architecture run with subnormal results flushed to zero."""
    return architecture in _FLUSHING


def emit_flushing(
    module: ModuleText, architecture: str, name: str, body: str, params: Sequence[tuple[str, str]]
) -> None:
    """Define `name` as `body`, a function of the same parameters, run in that mode."""
    given = ", ".join(f"{kind} {param}" for param, kind in params)
    for function in _NEEDS[architecture]:
        module.declare(function, "void (ptr)")
    module.include(name, _FLUSHING[architecture].substitute(name=name, body=body, params=given))
