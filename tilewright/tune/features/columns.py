"""The columns of one statement: names and numbers, sizes as logarithms to the base 2.

After Ansor and AutoTVM: loops by annotation, arithmetic by kind, the buffers that matter most with
what they touch at the levels of the nest, reuse and strides, the curve of arithmetic intensity;
and after Roller what each resource of the machine has to do (`performance_model.py`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from tilewright.target.cpu import LINE_BYTES, CpuTarget
from tilewright.tune.features.accesses import Statement, StatementAccess
from tilewright.tune.features.op_counts import KINDS
from tilewright.tune.features.performance_model import Cost

# Buffers of a statement that have columns of their own, those with the most lines.
BUFFERS = 4
# Points of the curve of arithmetic intensity, evenly along the logarithm of the iterations.
POINTS = 6

Column = tuple[str, float]


def log(number: float) -> float:
    """The logarithm of a size: 0 for nothing."""
    return math.log2(1.0 + number)


def statement_columns(s: Statement, cost: Cost, target: CpuTarget) -> Iterator[Column]:
    """All columns of a statement."""
    yield from _loops(s)
    yield from _arithmetic(s)
    yield from _intensity(s)
    yield from _cost(s, cost, target)
    order = sorted(s.accesses, key=lambda a: (a.scope == "register", -a.lines[0]))
    for place in range(BUFFERS):
        numbers = _buffer(s, order[place]) if place < len(order) else NO_BUFFER
        yield from zip(_BUFFER_NAMES[place], numbers, strict=True)


def _loops(s: Statement) -> Iterator[Column]:
    loops = list(zip(s.extents, s.kinds, strict=True))
    for kind in ("parallel", "serial", "unroll", "vectorize"):
        extents = [extent for extent, k in loops if k == kind]
        places = [place for place, (_, k) in enumerate(loops) if k == kind]
        yield f"{kind}.iterations", log(math.prod(extents) if extents else 0)
        yield f"{kind}.loops", float(len(extents))
        yield f"{kind}.first", log(extents[0] if extents else 0)
        yield f"{kind}.last", log(extents[-1] if extents else 0)
        yield f"{kind}.inside", float(len(loops) - places[-1]) if places else 0.0
    yield "runs", log(s.runs)
    yield "body", log(math.prod(s.extents[s.body :]))
    yield "trip count", log(s.extents[s.body - 1] if s.body else 0)
    yield "guarded", float(s.guarded)
    yield "has init", float(s.has_init)
    yield "intrinsic", float(s.intrinsic)


def _arithmetic(s: Statement) -> Iterator[Column]:
    for kind in KINDS:
        yield f"ops.{kind}", log(s.operations[kind] * s.runs)


def _intensity(s: Statement) -> Iterator[Column]:
    """Operations a byte, at levels spaced evenly over the logarithm of the iterations."""
    inner = [math.prod(s.extents[level:]) for level in range(len(s.extents) + 1)]
    sizes = [math.log2(n) for n in inner]
    flops = max(1, s.flops)
    for point in range(POINTS):
        wanted = sizes[0] * (1 - point / (POINTS - 1))
        level = min(range(len(sizes)), key=lambda n: abs(sizes[n] - wanted))
        touched = sum([a.elements[level] * a.item for a in s.accesses])
        yield f"intensity.{point}", log(inner[level] * flops / max(1, touched))
        yield f"working set.{point}", log(touched)


def _cost(s: Statement, cost: Cost, target: CpuTarget) -> Iterator[Column]:
    """The cycles of each resource, also as a fraction of all, which does not depend on the size."""
    alone = max(1.0, cost.total * cost.threads)
    for name, cycles in zip(_RESOURCES, _resources(cost), strict=True):
        yield f"cycles.{name}", log(cycles)
        yield f"fraction.{name}", cycles / alone
    yield "cycles", log(cost.total)
    yield "threads", cost.threads / target.cores
    yield "registers", cost.registers / target.vector_registers
    yield "lanes", math.log2(target.lanes(s.bits))


_RESOURCES = (
    "arithmetic",
    "load store",
    "dependency",
    "spills",
    "loop overhead",
    "fill 1",
    "fill 2",
    "fill 3",
)


def _resources(cost: Cost) -> tuple[float, ...]:
    execution = (cost.arithmetic, cost.load_store, cost.dependency, cost.spills)
    return (*execution, cost.loop_overhead, *cost.fills)


def _buffer(s: Statement, a: StatementAccess) -> list[float]:
    """Numbers in the order of `BUFFER_COLUMNS`."""
    body, inside = s.body, _inside_parallel(s)
    return [
        log(s.runs * a.item),
        log(a.elements[0] * a.item),
        log(a.lines[0]),
        log(a.elements[inside] * a.item),
        log(a.elements[max(0, body - 1)] * a.item),
        log(a.elements[body] * a.item),
        log(a.lines[body]),
        a.elements[0] * a.item / (a.lines[0] * LINE_BYTES),
        log(abs(a.steps[-1])) if a.steps else 0.0,
        log(abs(a.steps[body - 1])) if body else 0.0,
        log(a.row[inside]),
        float(a.clamped),
        float(a.reads),
        float(a.writes),
        float(a.scope == "register"),
        *_reuse(s, a),
    ]


def _reuse(s: Statement, a: StatementAccess) -> tuple[float, float, float]:
    """The innermost loop that reuses the same elements: its extent, and the reuse distance."""
    loop = next((n for n in reversed(range(len(s.extents))) if a.steps[n] == 0), None)
    if loop is None:
        return (0.0, 0.0, 0.0)
    between = sum([b.elements[loop + 1] * b.item for b in s.accesses])
    return (log(s.extents[loop]), log(math.prod(s.extents[loop + 1 :])), log(between))


BUFFER_COLUMNS = (
    "bytes",
    "unique bytes",
    "lines",
    "thread bytes",
    "iteration bytes",
    "body bytes",
    "body lines",
    "bytes a line",
    "stride",
    "iteration stride",
    "row",
    "clamped",
    "reads",
    "writes",
    "in registers",
    "reuse count",
    "reuse iterations",
    "reuse bytes",
)
NO_BUFFER = [0.0] * len(BUFFER_COLUMNS)
_BUFFER_NAMES = [[f"b{place}.{name}" for name in BUFFER_COLUMNS] for place in range(BUFFERS)]


def _inside_parallel(s: Statement) -> int:
    """The level of one task of a thread."""
    return max((n + 1 for n, kind in enumerate(s.kinds) if kind == "parallel"), default=0)
