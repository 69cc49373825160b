"""Inter-op parallelism: consecutive steps that run at once, as none reads what another writes.

Small kernels gain nothing from threads one by one. Several of them that do not depend on each other
are the tasks of one parallel region, if two threads are estimated to finish earlier that way. Steps
keep their order, so a group is a run of consecutive steps; all steps of a group have one number to
memory planning. Nothing is grouped in loops, nor where the work depends on symbolic dimensions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count

from tilewright.arith.expr import as_int
from tilewright.driver.kernel.kernel import Kernel
from tilewright.driver.program.steps import IfStep, Item, KernelStep, StepSequence, WhileStep
from tilewright.ir.loop.walk import loops
from tilewright.schedule.builtin.cpu.parallelize import PARALLEL_WORK

# The work that a thread could do while a parallel region begins and ends, about a microsecond.
FORK = PARALLEL_WORK
# The threads that share a region at least; with more of them a group gains more.
THREADS = 2
# The steps of a group at most: its code and its arguments grow with them.
MAX_STEPS = 64


def parallel_groups(program: StepSequence, kernels: Sequence[Kernel]) -> list[int]:
    """For each step, the number of the first step of its group: its own if it runs alone.

    `kernels` are those of the steps.
    """
    found: list[int] = []
    for run in _runs(program.items, count()):
        for group in _groups(program, kernels, run):
            found += [len(found)] * len(group)
    return found


def _runs(items: Sequence[Item], numbers: Iterator[int]) -> Iterator[list[int]]:
    """Kernel steps with nothing between them, by number in order; those of loops one by one."""
    run: list[int] = []
    for item in items:
        if isinstance(item, KernelStep):
            run.append(next(numbers))
            continue
        yield run
        run = []
        if isinstance(item, IfStep):
            for branch in item.branches:
                yield from _runs(branch, numbers)
        elif isinstance(item, WhileStep):
            yield from ([step] for inner in _runs(item.items, numbers) for step in inner)
    yield run


def _groups(
    program: StepSequence, kernels: Sequence[Kernel], run: Sequence[int]
) -> Iterator[list[int]]:
    """The steps of a run in groups, of one or of several that are faster together."""
    group: list[int] = []
    for step in run:
        if group and not _fits(program, kernels, step, group):
            yield from _settled(kernels, group)
            group = []
        group.append(step)
    yield from _settled(kernels, group)


def _settled(kernels: Sequence[Kernel], group: list[int]) -> Iterator[list[int]]:
    if len(group) > 1 and is_profitable([kernels[step] for step in group]):
        yield group
    else:
        yield from ([step] for step in group)


def _fits(
    program: StepSequence, kernels: Sequence[Kernel], step: int, group: Sequence[int]
) -> bool:
    """Whether a step may run beside others, by the buffers that they read and write."""
    if len(group) == MAX_STEPS or any(_work(kernels[s]) is None for s in (step, *group)):
        return False
    reads, writes = _buffers(program, step)
    others = (_buffers(program, other) for other in group)
    return all(reads.isdisjoint(written) and writes.isdisjoint(read) for read, written in others)


def _buffers(program: StepSequence, step: int) -> tuple[set[str], set[str]]:
    """The base buffers that a step reads, and those that it writes."""
    node = program.steps[step].node
    reads, writes = (
        {program.base_buffer(v) for v in values if v} for values in (node.inputs, node.outputs)
    )
    return reads, writes


def is_profitable(kernels: Sequence[Kernel]) -> bool:
    """Whether one region of these kernels ends earlier than the kernels one after another."""
    in_order, free = 0, [0] * THREADS
    for kernel in kernels:
        work = _work(kernel)
        assert work is not None
        in_order += work // THREADS + FORK if _is_parallel(kernel) else work
        free = sorted([free[0] + work, *free[1:]])
    return free[-1] + FORK < in_order


def _work(kernel: Kernel) -> int | None:
    """The steps of a kernel, at least one for each element that it touches.

    None where they are not known, or so many that the kernel is better parallel by itself.
    """
    flops, moved = as_int(kernel.flops), as_int(kernel.bytes)
    if flops is None or moved is None:
        return None
    work = max(flops, moved // 4)
    return None if _is_parallel(kernel) and work > THREADS * FORK else work


def _is_parallel(kernel: Kernel) -> bool:
    return any(loop.kind == "parallel" for loop in loops(kernel.finalized.body))
