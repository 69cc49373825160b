"""The execution plan: what a run of a model does, as kernel calls, checks, branches and loops.

On a CPU `entry_points.py` emits it as native code; on a GPU the manifest has it
(`codegen/gpu/plan_manifest.py`) and `runtime/cuda/plan_executor.py` interprets it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tilewright.arith.expr import Expr, const
from tilewright.core.node import node
from tilewright.ir.types import Shape
from tilewright.passes.memory.plan_memory import RuntimePlacement


@node
class BufferRef:
    """The address of a buffer: `space` is input, output, arena, weights, carried or index_status.

    `offset` is the index of the input, output or carried buffer (see `LoopCarried`), or the byte
    offset into the arena, the weights or the words of index checks. A view into another value
    begins `start` bytes behind that.
    """

    space: str
    offset: Expr
    start: Expr = const(0)


@node
class KernelCall:
    """One step of the model: a kernel, its buffers and the sizes it is given."""

    kernel: str
    buffers: tuple[BufferRef, ...]
    sizes: tuple[Expr, ...]


@node
class ParallelCalls:
    """Independent kernel calls, which run concurrently: inter-op parallelism."""

    calls: tuple[KernelCall, ...]


@node
class CheckSizes:
    """The run ends with `status` unless the condition holds."""

    condition: Expr
    status: int


@node
class CheckIndex:
    """A kernel before has checked indices: the run ends with `status` if one lay outside.

    Its words are at `offset` among those of all checks: the index, 0 if all was well, and the size
    of the dimension.
    """

    offset: int
    status: int


@node
class Conditional:
    """One of two lists of actions, by an expression over sizes or a truth value in memory.

    `sizes` are data-dependent sizes that it defines: a name, and the value after either list.
    """

    condition: Expr | BufferRef
    then: tuple[Action, ...]
    other: tuple[Action, ...]
    sizes: tuple[tuple[str, Expr, Expr], ...] = ()


@node
class ReadSize:
    """A number in memory defines a data-dependent size.

    The run ends with `status` if it is negative or beyond the limit, for which memory is planned.
    """

    name: str
    place: BufferRef
    limit: Expr
    status: int


@node
class LoopCarried:
    """A value that a loop carries from one iteration to the next, double-buffered.

    An iteration reads the carried buffer of index `read`, and writes the one of `written`.
    """

    read: int
    written: int
    initial: BufferRef
    result: BufferRef
    spare: BufferRef
    size: Expr


@node
class CountedLoop:
    """Actions that are run `count` times at most, while `counter` is 0, 1, ...

    They are not run at all if the truth value at `begin` is false, and not again if that at `going`
    is. `trip_count` names the data-dependent size that is the number of times, "" for none.
    """

    counter: str
    count: Expr
    actions: tuple[Action, ...]
    carried: tuple[LoopCarried, ...] = ()
    begin: BufferRef | None = None
    going: BufferRef | None = None
    trip_count: str = ""


Action = KernelCall | ParallelCalls | CheckSizes | CheckIndex | Conditional | ReadSize | CountedLoop


@node
class ExecutionPlan:
    """The actions of a run in order, and the memory they need.

    Where sizes are symbolic, `placement` lays out the arena at the start of every run, and the
    calls mention its offsets; otherwise the arena has `arena_size` bytes. `data_dependent_sizes`
    are those that only a run gives; `host_inputs` names the inputs, by their indices, whose values
    conditions depend on. Index checks have `status_bytes` of words, zero when a run begins.
    """

    symbols: tuple[str, ...]
    actions: tuple[Action, ...]
    output_shapes: tuple[Shape, ...]
    arena_size: int = 0
    placement: RuntimePlacement | None = None
    data_dependent_sizes: tuple[str, ...] = ()
    host_inputs: tuple[tuple[str, int], ...] = ()
    status_bytes: int = 0

    @property
    def calls(self) -> tuple[KernelCall, ...]:
        """All kernel calls in order, those of branches included."""
        return tuple(_kernel_calls(self.actions))


def _kernel_calls(actions: Sequence[Action]) -> Iterator[KernelCall]:
    for action in actions:
        if isinstance(action, KernelCall):
            yield action
        elif isinstance(action, ParallelCalls):
            yield from action.calls
        elif isinstance(action, Conditional):
            yield from _kernel_calls((*action.then, *action.other))
        elif isinstance(action, CountedLoop):
            yield from _kernel_calls(action.actions)


def place(space: str, offset: Expr | int) -> BufferRef:
    """A place with the offset promoted to an expression."""
    return BufferRef(space, offset if isinstance(offset, Expr) else const(offset))
