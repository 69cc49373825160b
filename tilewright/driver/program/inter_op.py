"""Steps that run side by side: consecutive ones of which none reads what another writes.

Small kernels gain nothing from threads one by one. Several of them that do not depend on each other
are the tasks of one job, if the estimated work of two threads is then less than before. Steps keep
their order, so a group is as many steps as follow each other; all of a group are one moment to the
planning of memory. Nothing is grouped in loops, nor where work depends on the sizes of a run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tilewright.arith.expr import as_int
from tilewright.driver.kernel.kernels import Kernel
from tilewright.driver.program.linearize import Branch, Cycle, Flat, Item, Step
from tilewright.ir.loop.walk import loops
from tilewright.schedule.builtin.cpu.parallelize import PARALLEL_WORK

# The steps that a thread could do while a job is begun and ended, about a microsecond.
FORK = PARALLEL_WORK
# As many as share a job at least; with more of them a group is better still.
THREADS = 2
# The steps of a group at most: its code and its arguments grow with them.
MOST_STEPS = 64


def moments(flat: Flat) -> list[int]:
    """For each step, the number of the first that runs beside it: its own if it runs alone."""
    found: list[int] = []
    for run in _runs(flat.items):
        for group in _groups(flat, run):
            found += [len(found)] * len(group)
    return found


def _runs(items: Sequence[Item]) -> Iterator[list[Step]]:
    """Steps with nothing between them, all steps in order; those of loops one by one."""
    run: list[Step] = []
    for item in items:
        if isinstance(item, Step):
            run.append(item)
            continue
        yield run
        run = []
        if isinstance(item, Branch):
            for branch in item.branches:
                yield from _runs(branch)
        elif isinstance(item, Cycle):
            yield from ([step] for inner in _runs(item.items) for step in inner)
    yield run


def _groups(flat: Flat, run: Sequence[Step]) -> Iterator[list[Step]]:
    """The steps of a run in groups, of one or of several that are better together."""
    group: list[Step] = []
    for step in run:
        if group and not _fits(flat, step, group):
            yield from _settled(group)
            group = []
        group.append(step)
    yield from _settled(group)


def _settled(group: list[Step]) -> Iterator[list[Step]]:
    if len(group) > 1 and together([s.kernel for s in group]):
        yield group
    else:
        yield from ([step] for step in group)


def _fits(flat: Flat, step: Step, group: Sequence[Step]) -> bool:
    """Whether a step may run beside others, by the bytes that they read and write."""
    if len(group) == MOST_STEPS or any(_work(s.kernel) is None for s in (step, *group)):
        return False
    reads, writes = _roots(flat, step.node.inputs), _roots(flat, step.node.outputs)
    return all(
        reads.isdisjoint(_roots(flat, s.node.outputs))
        and writes.isdisjoint(_roots(flat, s.node.inputs))
        for s in group
    )


def _roots(flat: Flat, values: Sequence[str]) -> set[str]:
    return {flat.root_of(v) for v in values if v}


def together(kernels: Sequence[Kernel]) -> bool:
    """Whether two threads are done earlier with one job of these kernels than with each alone."""
    apart, free = 0, [0] * THREADS
    for kernel in kernels:
        work = _work(kernel)
        assert work is not None
        apart += work // THREADS + FORK if _is_shared(kernel) else work
        free = sorted([free[0] + work, *free[1:]])
    return free[-1] + FORK < apart


def _work(kernel: Kernel) -> int | None:
    """The steps of a kernel, at least one for each element that it touches.

    None where they are not known, or so many that the kernel is better shared by itself.
    """
    flops, moved = as_int(kernel.flops), as_int(kernel.bytes)
    if flops is None or moved is None:
        return None
    work = max(flops, moved // 4)
    return None if _is_shared(kernel) and work > THREADS * FORK else work


def _is_shared(kernel: Kernel) -> bool:
    return any(loop.kind == "parallel" for loop in loops(kernel.plain.body))
