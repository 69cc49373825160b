"""The back ends: how kernels are scheduled, finalized and emitted for each kind of machine.

Everything else in the driver is the same for all machines.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from tilewright.codegen.cpu.parallel import emit_func
from tilewright.codegen.gpu.nvptx import emit_launches
from tilewright.codegen.llvm.builder import ModuleBuilder
from tilewright.codegen.llvm.source_lines import SourceLines
from tilewright.driver.precision import rounds_natively
from tilewright.finalize.cpu.pipeline import finalize
from tilewright.finalize.gpu.pipeline import finalize_gpu
from tilewright.finalize.gpu.storage_scope import ALIGNED_PARAMS
from tilewright.ir.loop.nodes import Func
from tilewright.schedule.builtin.cpu.select_rule import schedule_func
from tilewright.schedule.builtin.gpu.select_rule import schedule_for_gpu
from tilewright.schedule.builtin.rules import ScheduledFunc
from tilewright.target.cpu import CpuTarget
from tilewright.target.gpu import GpuTarget
from tilewright.target.target import Target, kind_of

ScheduleProvider = Callable[[Func, frozenset[str], Any], ScheduledFunc]
"""Schedules a function for a target; it may choose the layout of the parameters that are named."""


class Emit(Protocol):
    """A finalized function with these dimension parameters, for a precision, as LLVM text.

    If it is `located`, instructions say which line of the function's text they come from.
    """

    def __call__(
        self, func: Func, sizes: Sequence[str], target: Any, precision: str, located: bool = False
    ) -> str:
        """The text of a module."""
        ...


@dataclass(frozen=True)
class Backend:
    """How kernels are made for one kind of machine; each function takes such a machine."""

    schedule: ScheduleProvider
    finalize: Callable[[Func, Any], Func]
    emit: Emit
    # The annotation of a function whose parameters are all aligned, if that matters.
    aligned: tuple[tuple[str, int], ...] = ()
    # Buffers up to so many bytes share memory with no other, so that no kernel waits for their
    # readers.
    no_reuse_up_to: int = 0
    # Whether the host computes conditions on inputs that it knows, in place of a kernel.
    host_predicates: bool = False


def backend_of(machine: Target) -> Backend:
    """The backend for a machine."""
    return BACKENDS[kind_of(machine)]


def _emit_for_cpu(
    func: Func, sizes: Sequence[str], target: CpuTarget, precision: str, located: bool = False
) -> str:
    native = target.architecture if rounds_natively(target, precision) else ""
    module = ModuleBuilder(native, target.orders_zeros, SourceLines(func) if located else None)
    emit_func(module, func, sizes)
    return module.text()


def _emit_for_gpu(
    func: Func, sizes: Sequence[str], target: GpuTarget, precision: str, located: bool = False
) -> str:
    lines = SourceLines(func) if located else None
    # All have the conversion to bf16, none loads of some elements.
    module = ModuleBuilder(target.architecture, source_lines=lines, masks_vectors=False)
    emit_launches(module, func, sizes, target.has_pdl)
    return module.text()


BACKENDS = {
    "cpu": Backend(schedule_func, finalize, _emit_for_cpu),
    "gpu": Backend(
        schedule_for_gpu, finalize_gpu, _emit_for_gpu, (ALIGNED_PARAMS,), 256 << 10, True
    ),
}
