"""What a run on a GPU does, as data for the manifest: kernels with their launches, and the actions.

Sizes are formulas, written as `runtime/size_tree.py` reads them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import Any

from tilewright.arith.expr import Binary, Cast, Const, Expr, Select, Unary, Var, as_int, const
from tilewright.arith.simplify import simplify
from tilewright.codegen.gpu.launches import Launch, TensorMap
from tilewright.codegen.host.plan import (
    Action,
    BufferRef,
    CheckSizes,
    Conditional,
    CountedLoop,
    ExecutionPlan,
    KernelCall,
    LoopCarried,
    ParallelCalls,
    ReadSize,
)
from tilewright.core.dtypes import BOOL
from tilewright.core.errors import CodegenError
from tilewright.core.node import node
from tilewright.ir.loop.nodes import Buffer
from tilewright.ir.types import Shape
from tilewright.passes.memory.plan_memory import RuntimePlacement
from tilewright.runtime.size_tree import OPERATIONS, Formula
from tilewright.target.gpu import GpuTarget

Data = dict[str, Any]

# A multiprocessor divides its memory between cache and shared anew for a launch that wants another
# part, once all that ran before is over. In a model with launches that take most of it as shared,
# those that have no more blocks than this for each multiprocessor do without the cache instead.
CARVEOUT_BLOCKS_PER_SM = 8


@node
class LaunchedKernel:
    """A kernel: the names of its sizes, the buffers that it is given, and its launches.

    Buffers with gaps between their rows are in `boxes`, with their shape and that of their room.
    """

    name: str
    sizes: tuple[str, ...]
    params: tuple[Buffer, ...]
    launches: tuple[Launch, ...]
    boxes: Mapping[str, tuple[Shape, Shape]]


def device_program(
    code: ExecutionPlan, kernels: Sequence[LaunchedKernel], target: GpuTarget
) -> Data:
    """All that a run needs to know."""
    largest = max((x.shared for kernel in kernels for x in kernel.launches), default=0)
    few = CARVEOUT_BLOCKS_PER_SM * target.sm_count if 2 * largest > target.shared_per_sm else 0
    return {
        "symbols": list(code.symbols),
        "late": list(code.late),
        "asked": [list(pair) for pair in code.asked],
        "kernels": {kernel.name: _kernel(kernel, target, few) for kernel in kernels},
        "actions": _actions(code.actions, count()),
        "output_shapes": [[formula(d) for d in shape] for shape in code.output_shapes],
        "arena": code.arena_size if code.placement is None else _placement(code.placement),
    }


def formula(e: Expr) -> Formula:
    """An expression over sizes."""
    match e:
        case Const(value):
            return int(value)
        case Var(name):
            return name
        case Cast(_, a) if a.dtype.is_integer or a.dtype == BOOL:
            return formula(a)
        case Binary(op, a, b) if op in OPERATIONS:
            return [op, formula(a), formula(b)]
        case Unary(op, a) if op in OPERATIONS:
            return [op, formula(a)]
        case Select(cond, a, b):
            return ["select", formula(cond), formula(a), formula(b)]
    raise CodegenError("gpu.formula", f"the host cannot compute the size {e}")


def _placement(placement: RuntimePlacement) -> Data:
    conflicts = placement.conflicts
    return {
        "sizes": [formula(s) for s in placement.sizes],
        "names": [v.name for v in placement.offsets],
        "conflicts": None if conflicts is None else [list(c) for c in conflicts],
    }


def _kernel(kernel: LaunchedKernel, target: GpuTarget, few: int) -> Data:
    """Sizes, where each buffer has bytes, and launches with the buffers they read and write."""
    names = [p.name for p in kernel.params]
    return {
        "sizes": list(kernel.sizes),
        "spans": [_span(p, kernel.boxes.get(p.name)) for p in kernel.params],
        "launches": [_launch(x, names, target, few) for x in kernel.launches],
    }


def _span(param: Buffer, box: tuple[Shape, Shape] | None) -> list[Any]:
    """The bytes of a buffer that lie one behind the other, and how often, how far apart."""
    shape, room = box or (param.shape, param.shape)
    step: Expr = const(param.dtype.bytes)
    run, rows, whole = step, list[list[Formula]](), True
    for size, wide in zip(reversed(shape), reversed(room), strict=True):
        if whole:
            run = run * size
        else:
            rows.append([formula(simplify(size)), formula(simplify(step))])
        whole, step = whole and size == wide, step * wide
    return [formula(simplify(run)), rows]


def _launch(launch: Launch, names: Sequence[str], target: GpuTarget, few: int) -> Data:
    reads, writes = launch.touched
    return {
        "name": launch.name,
        "grid": formula(launch.grid),
        "threads": launch.block_threads,
        "shared": launch.shared,
        "maps": [_map(m) for m in launch.maps],
        "together": launch.cooperative_launch,
        "early": target.has_pdl and launch.allows_pdl,
        "keeps_shared": (as_int(launch.grid) or few + 1) <= few,
        "loop": launch.loop,
        "steps": formula(launch.steps),
        "reads": [n for n, name in enumerate(names) if name in reads],
        "writes": [n for n, name in enumerate(names) if name in writes],
    }


def _map(m: TensorMap) -> Data:
    rows, columns = m.box
    return {
        "buffer": m.number,
        "rows": formula(m.rows),
        "columns": formula(m.row),
        "box": [rows, columns],
    }


def _actions(actions: Sequence[Action], steps: Iterator[int]) -> list[Data]:
    """What is done in order; what may run side by side does so one after another.

    `steps` numbers the calls as the manifest lists them: a run may do some never, or often.
    """
    found: list[Data] = []
    for a in actions:
        found += (_action(x, steps) for x in (a.calls if isinstance(a, ParallelCalls) else (a,)))
    return found


def _action(
    action: KernelCall | CheckSizes | Conditional | ReadSize | CountedLoop, steps: Iterator[int]
) -> Data:
    match action:
        case KernelCall(kernel, buffers, sizes):
            places = [_place(p) for p in buffers]
            given = {"kernel": kernel, "buffers": places, "sizes": [formula(s) for s in sizes]}
            return {"do": "call", "step": next(steps), **given}
        case CheckSizes(condition, status):
            return {"do": "require", "condition": formula(condition), "status": status}
        case ReadSize(name, place, limit, status):
            value = {"name": name, "limit": formula(limit), "status": status}
            return {"do": "learn", "place": _place(place), **value}
        case Conditional():
            return _choose(action, steps)
        case CountedLoop():
            return _repeat(action, steps)


def _choose(action: Conditional, steps: Iterator[int]) -> Data:
    decides = action.condition
    return {
        "do": "choose",
        "condition": formula(decides) if isinstance(decides, Expr) else None,
        "place": _place(decides) if isinstance(decides, BufferRef) else None,
        "then": _actions(action.then, steps),
        "other": _actions(action.other, steps),
        "late": [[n, formula(one), formula(two)] for n, one, two in action.late],
    }


def _repeat(action: CountedLoop, steps: Iterator[int]) -> Data:
    return {
        "do": "repeat",
        "counter": action.counter,
        "count": formula(action.count),
        "actions": _actions(action.actions, steps),
        "carried": [_carried(c) for c in action.carried],
        "begin": None if action.begin is None else _place(action.begin),
        "going": None if action.going is None else _place(action.going),
        "late": action.late,
    }


def _carried(c: LoopCarried) -> Data:
    places = {"initial": c.initial, "result": c.result, "spare": c.spare}
    return {
        "read": c.read,
        "written": c.written,
        "size": formula(c.size),
        **{word: _place(place) for word, place in places.items()},
    }


def _place(place: BufferRef) -> list[Formula]:
    return [place.space, formula(place.offset), formula(place.start)]
