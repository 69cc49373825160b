"""The execution plan of a GPU as data for the manifest: kernels with their launches, and actions.

Sizes are expressions as `runtime/size_expr.py` evaluates them.
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
    CheckIndex,
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
from tilewright.runtime.size_expr import OPERATIONS, SizeExpr
from tilewright.target.calibration.sm_90a import OCCUPANCY
from tilewright.target.gpu import GpuTarget

Data = dict[str, Any]


@node
class LaunchedKernel:
    """A kernel: the names of its sizes, the buffers that it is given, and its launches.

    Strided buffers are in `boxes`, with their shape and that of their storage.
    """

    name: str
    sizes: tuple[str, ...]
    params: tuple[Buffer, ...]
    launches: tuple[Launch, ...]
    boxes: Mapping[str, tuple[Shape, Shape]]


def device_program(
    code: ExecutionPlan, kernels: Sequence[LaunchedKernel], target: GpuTarget
) -> Data:
    """The plan as data."""
    largest = max((x.shared for kernel in kernels for x in kernel.launches), default=0)
    # Where the largest launches need most of an SM's L1 as shared memory, small launches keep that
    # carveout and do without the cache.
    few = OCCUPANCY.carveout_blocks * target.sm_count if 2 * largest > target.shared_per_sm else 0
    return {
        "symbols": list(code.symbols),
        "data_dependent_sizes": list(code.data_dependent_sizes),
        "host_inputs": [list(pair) for pair in code.host_inputs],
        "kernels": {kernel.name: _kernel(kernel, target, few) for kernel in kernels},
        "actions": _actions(code.actions, count()),
        "output_shapes": [[size_expr(d) for d in shape] for shape in code.output_shapes],
        **({"status_bytes": code.status_bytes} if code.status_bytes else {}),
        "arena": code.arena_size if code.placement is None else _placement(code.placement),
    }


def size_expr(e: Expr) -> SizeExpr:
    """An expression over sizes, as the manifest has it."""
    match e:
        case Const(value):
            return int(value)
        case Var(name):
            return name
        case Cast(_, a) if a.dtype.is_integer or a.dtype == BOOL:
            return size_expr(a)
        case Binary(op, a, b) if op in OPERATIONS and not a.dtype.is_float:
            return [op, size_expr(a), size_expr(b)]
        case Unary(op, a) if op in OPERATIONS:
            return [op, size_expr(a)]
        case Select(cond, a, b):
            return ["select", size_expr(cond), size_expr(a), size_expr(b)]
    raise CodegenError("gpu.formula", f"the host cannot compute the size {e}")


def _placement(placement: RuntimePlacement) -> Data:
    conflicts = placement.conflicts
    return {
        "sizes": [size_expr(s) for s in placement.sizes],
        "names": [v.name for v in placement.offsets],
        "conflicts": None if conflicts is None else [list(c) for c in conflicts],
    }


def _kernel(kernel: LaunchedKernel, target: GpuTarget, few: int) -> Data:
    """Sizes, where each buffer has bytes, and launches with the buffers they read and write."""
    names = [p.name for p in kernel.params]
    return {
        "sizes": list(kernel.sizes),
        "byte_ranges": [_span(p, kernel.boxes.get(p.name)) for p in kernel.params],
        "launches": [_launch(x, names, target, few) for x in kernel.launches],
    }


def _span(param: Buffer, box: tuple[Shape, Shape] | None) -> list[Any]:
    """The contiguous bytes of a buffer, and the counts and strides at which they repeat."""
    shape, storage = box or (param.shape, param.shape)
    step: Expr = const(param.dtype.bytes)
    run, rows, whole = step, list[list[SizeExpr]](), True
    for size, wide in zip(reversed(shape), reversed(storage), strict=True):
        if whole:
            run = run * size
        else:
            rows.append([size_expr(simplify(size)), size_expr(simplify(step))])
        whole, step = whole and size == wide, step * wide
    return [size_expr(simplify(run)), rows]


def _launch(launch: Launch, names: Sequence[str], target: GpuTarget, few: int) -> Data:
    reads, writes = launch.touched
    return {
        "name": launch.name,
        "grid": size_expr(launch.grid),
        "threads": launch.threads,
        "shared": launch.shared,
        "maps": [_map(m) for m in launch.maps],
        "cooperative": launch.cooperative_launch,
        "pdl": target.has_pdl and launch.allows_pdl,
        "shared_carveout": (as_int(launch.grid) or few + 1) <= few,
        "loop": launch.loop,
        "steps": size_expr(launch.steps),
        "reads": [n for n, name in enumerate(names) if name in reads],
        "writes": [n for n, name in enumerate(names) if name in writes],
    }


def _map(m: TensorMap) -> Data:
    shape = [size_expr(size) for size in m.shape]
    return {"buffer": m.number, "shape": shape, "box": list(m.box)}


def _actions(actions: Sequence[Action], steps: Iterator[int]) -> list[Data]:
    """The actions in order; parallel calls run one after another.

    `steps` numbers the calls in the order of the manifest; a run may skip or repeat some.
    """
    found: list[Data] = []
    for a in actions:
        if isinstance(a, CheckIndex):
            continue  # nobody waits for a kernel to read its words
        found += (_action(x, steps) for x in (a.calls if isinstance(a, ParallelCalls) else (a,)))
    return found


def _action(
    action: KernelCall | CheckSizes | Conditional | ReadSize | CountedLoop, steps: Iterator[int]
) -> Data:
    match action:
        case KernelCall(kernel, buffers, sizes):
            places = [_buffer_ref(p) for p in buffers]
            given = {"kernel": kernel, "buffers": places, "sizes": [size_expr(s) for s in sizes]}
            return {"do": "call", "step": next(steps), **given}
        case CheckSizes(condition, status):
            return {"do": "check_sizes", "condition": size_expr(condition), "status": status}
        case ReadSize(name, place, limit, status):
            value = {"name": name, "limit": size_expr(limit), "status": status}
            return {"do": "read_size", "place": _buffer_ref(place), **value}
        case Conditional():
            return _conditional(action, steps)
        case CountedLoop():
            return _counted_loop(action, steps)


def _conditional(action: Conditional, steps: Iterator[int]) -> Data:
    decides = action.condition
    return {
        "do": "conditional",
        "condition": size_expr(decides) if isinstance(decides, Expr) else None,
        "place": _buffer_ref(decides) if isinstance(decides, BufferRef) else None,
        "then": _actions(action.then, steps),
        "other": _actions(action.other, steps),
        "sizes": [[n, size_expr(one), size_expr(two)] for n, one, two in action.sizes],
    }


def _counted_loop(action: CountedLoop, steps: Iterator[int]) -> Data:
    return {
        "do": "counted_loop",
        "counter": action.counter,
        "count": size_expr(action.count),
        "actions": _actions(action.actions, steps),
        "carried": [_carried(c) for c in action.carried],
        "begin": None if action.begin is None else _buffer_ref(action.begin),
        "going": None if action.going is None else _buffer_ref(action.going),
        "trip_count": action.trip_count,
    }


def _carried(c: LoopCarried) -> Data:
    places = {"initial": c.initial, "result": c.result, "spare": c.spare}
    return {
        "read": c.read,
        "written": c.written,
        "size": size_expr(c.size),
        **{word: _buffer_ref(place) for word, place in places.items()},
    }


def _buffer_ref(place: BufferRef) -> list[SizeExpr]:
    return [place.space, size_expr(place.offset), size_expr(place.start)]
