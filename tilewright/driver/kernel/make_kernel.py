"""A kernel step of a model → LLVM text: lower, schedule, finalize, emit."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

from tilewright.core.errors import Error, Loc
from tilewright.driver.kernel.backend import Backend, ScheduleProvider, backend_of
from tilewright.driver.kernel.kernel import Kernel, free_dims
from tilewright.driver.kernel.kernel_cache import KernelCache
from tilewright.driver.kernel.overrides import overridden
from tilewright.driver.options import CompileOptions
from tilewright.driver.program.steps import KernelStep
from tilewright.driver.tuning.apply_records import RecordedSchedules
from tilewright.ir.loop.nodes import Func
from tilewright.ir.types import Shape
from tilewright.lower.index_checks import without_checks
from tilewright.lower.lower_kernel import lower_kernel
from tilewright.schedule.choice_log import begin_kernel

_LOG = logging.getLogger(__name__)


def make_kernel(step: KernelStep, options: CompileOptions, cache: KernelCache) -> Kernel:
    """The kernel of a step; equal steps, and steps with equal loops, share one from `cache`."""
    backend, target, measure = backend_of(options.target), options.target, options.clock.measure
    annotations = backend.aligned if step.aligned else ()
    if (known := cache.of_step(step, annotations)) is not None:
        return known
    with _located(step.node.loc):
        with measure("lower"):
            lowered = lower_kernel(step.node, step.types, step.strided, annotations)
            if not options.checks:
                lowered = replace(lowered, func=without_checks(lowered.func))
            kernel = cache.of_loops(step, lowered)
        if kernel is None:
            func = replace(lowered.func, name=cache.new_name(lowered.func.name))
            constants = frozenset(func.params[i].name for i in step.constants)
            begin_kernel(func.name)
            with measure("schedule"):
                scheduled = schedules_of(options, backend)(func, constants, target)
                scheduled = overridden(scheduled, options.overrides)
            note = f" ({scheduled.note})" if scheduled.note else ""
            _LOG.debug("%s is scheduled by the rule %s%s", func.name, scheduled.rule, note)
            with measure("finalize"):
                strided = _with_strides(scheduled.func, lowered.parent_shapes)
                finalized = backend.finalize(strided, target)
                dims = free_dims(finalized)
            with measure("emit LLVM"):
                llvm = backend.emit(finalized, dims, target, options.precision)
            kernel = Kernel(lowered, scheduled, finalized, llvm, dims)
        return cache.add(step, annotations, lowered, kernel)


def schedules_of(options: CompileOptions, backend: Backend) -> ScheduleProvider:
    """Who schedules: a tool, tuned records, or the built-in rules."""
    if options.schedules is not None:
        return options.schedules
    if options.records is not None:
        return RecordedSchedules(options.records)
    return backend.schedule


def _with_strides(func: Func, parent_shapes: Mapping[str, Shape]) -> Func:
    """`func` with strided parameters laid out by their parents' shapes; loops stay as they are."""
    params = tuple(replace(p, shape=parent_shapes.get(p.name, p.shape)) for p in func.params)
    return replace(func, params=params)


@contextmanager
def _located(loc: Loc) -> Iterator[None]:
    """Say of errors in this block which node they are about."""
    try:
        yield
    except Error as error:
        raise error.at(loc) from None
