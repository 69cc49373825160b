"""A kernel's way from tensor expression to assembly, as texts.

{"tensor": [line, ...],              what is computed; [] for an operator that is given as loops
 "lowered": [...],                   loops, not yet scheduled
 "trace": ["split(...)", ...],       the steps of the schedule
 "steps": [[...], ...],              the loops after each step
 "scheduled": [...],                 the loops after all, which a file may have replaced
 "finalized": [...],
 "llvm": [...], "llvm_lines": [...],        of each line the line of `finalized`, 0 for none
 "assembly": [...], "assembly_lines": [...]}
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tilewright.driver.kernel.kernel import Kernel
from tilewright.driver.model_build import BuiltStep
from tilewright.driver.report.explorer.located_code import located_code
from tilewright.ir.loop.text import print_func
from tilewright.ir.tensor.text import print_program
from tilewright.lower.tensor_program import group_program
from tilewright.schedule.schedule import Schedule
from tilewright.target.target import Target


def kernel_texts(step: BuiltStep, target: Target, precision: str) -> dict[str, Any]:
    """The texts of the kernel that a step calls."""
    kernel = step.kernel
    llvm, assembly = located_code(kernel, target, precision)
    return {
        "tensor": _tensor(step),
        "lowered": print_func(kernel.lowered.func).splitlines(),
        "trace": kernel.trace.splitlines(),
        "steps": _steps(kernel),
        "scheduled": print_func(kernel.scheduled.func).splitlines(),
        "finalized": print_func(kernel.finalized).splitlines(),
        "llvm": llvm.text,
        "llvm_lines": llvm.lines,
        "assembly": assembly.text,
        "assembly_lines": assembly.lines,
    }


def _tensor(step: BuiltStep) -> list[str]:
    regions = step.node.regions
    return print_program(group_program(regions[0])).splitlines() if regions else []


def _steps(kernel: Kernel) -> list[list[str]]:
    """The loops after each step of the trace, which is replayed."""
    sch = Schedule(replace(kernel.lowered.func, name=kernel.name))
    texts = []
    for step in kernel.scheduled.trace:
        sch.apply(step)
        texts.append(print_func(sch.func).splitlines())
    return texts
