"""The host program: the actions by which native code, or a GPU's launch list, runs a model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tilewright.arith.expr import Expr, const
from tilewright.arith.simplify import simplify
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
from tilewright.core.errors import Loc
from tilewright.driver.kernel.kernel import Kernel
from tilewright.driver.program.buffer_assignment import BufferAssignment
from tilewright.driver.program.host_predicates import host_scalar_name
from tilewright.driver.program.steps import (
    BindDimStep,
    CarriedValue,
    Item,
    KernelStep,
    StepSequence,
    WhileStep,
)
from tilewright.ir.graph.nodes import Check, Graph
from tilewright.lower.index_checks import checked_nodes

# The bytes of an index check: the index and the size.
WORDS = 16


@dataclass(frozen=True)
class HostProgram:
    """The code around the kernels, and the messages of runs that end with a status other than 0.

    `index_checks` has those that are about an index: where its words are, and the node's name.
    """

    code: ExecutionPlan
    errors: dict[int, str]
    index_checks: dict[int, tuple[int, str]]


def host_program(
    graph: Graph, program: StepSequence, kernels: Sequence[Kernel], memory: BufferAssignment
) -> HostProgram:
    """The program that calls the kernels of all steps with their buffers and dimensions."""
    builder = _Builder(program, kernels, memory)
    names = map(host_scalar_name, range(len(graph.inputs)))
    code = ExecutionPlan(
        graph.symbols(),
        builder.actions(program.items),
        tuple(graph.tensor_type(o).shape for o in graph.outputs),
        memory.plan.peak,
        memory.plan.placement,
        tuple(program.dynamic_dims),
        tuple((name, n) for n, name in enumerate(names) if name in program.host_scalars),
        builder.status_bytes,
    )
    return HostProgram(code, builder.errors, builder.index_checks)


@dataclass
class _Builder:
    """Makes the actions of one item after another."""

    program: StepSequence
    kernels: Sequence[Kernel]
    memory: BufferAssignment
    errors: dict[int, str] = field(default_factory=dict)
    index_checks: dict[int, tuple[int, str]] = field(default_factory=dict)
    status_bytes: int = 0
    # The number of the next kernel step.
    step: int = 0

    def actions(self, items: Sequence[Item]) -> tuple[Action, ...]:
        """The action of each item; kernel steps of one group are one action."""
        found: list[Action] = []
        checks: list[CheckIndex] = []  # of the last call, or group of calls
        for item in items:
            start = self.status_bytes
            action = self._action(item)
            if isinstance(action, KernelCall) and self.memory.groups[self.step - 1] < self.step - 1:
                before = found.pop()
                calls = before.calls if isinstance(before, ParallelCalls) else (before,)
                action = ParallelCalls((*calls, action))
            else:
                found += checks
                checks = []
            found.append(action)
            if isinstance(item, KernelStep):
                checks += self._checks(item, start)
        return (*found, *checks)

    def _checks(self, step: KernelStep, start: int) -> Iterator[CheckIndex]:
        """The checks of a kernel, whose words begin at `start`."""
        nodes = checked_nodes(step.node, step.types)
        for offset, node in zip(range(start, self.status_bytes, WORDS), nodes, strict=False):
            status = self._status("an index lies outside its dimension", node.loc)
            self.index_checks[status] = (offset, node.loc.node)
            yield CheckIndex(offset, status)

    def _action(self, item: Item) -> Action:
        if isinstance(item, KernelStep):
            return self._call(item)
        if isinstance(item, Check):
            return CheckSizes(item.condition, self._status(item.message, item.loc))
        if isinstance(item, BindDimStep):
            message = f"size {item.name} is more than {item.bound}, or negative"
            status = self._status(message, item.loc)
            return ReadSize(item.name, self.memory.place(item.value), item.bound, status)
        if isinstance(item, WhileStep):
            return self._repeat(item)
        decides = item.condition
        condition = decides if isinstance(decides, Expr) else self.memory.place(decides)
        then, other = (self.actions(branch) for branch in item.branches)
        dims = tuple((name, *pair) for name, pair in item.dynamic_dims.items())
        return Conditional(condition, then, other, dims)

    def _call(self, step: KernelStep) -> KernelCall:
        node, kernel, place = step.node, self.kernels[self.step], self.memory.place
        given = [v for v in node.inputs if v]
        places = [place(v, kernel.layouts.get(i)) for i, v in enumerate(given)]
        places += [place(v) for v in node.outputs]
        workspaces = range(len(kernel.workspaces))
        places += [self.memory.workspace(self.step, i) for i in workspaces]
        if kernel.status_bytes:
            places.append(BufferRef("index_status", const(self.status_bytes)))
            self.status_bytes += kernel.status_bytes
        self.step += 1
        return KernelCall(kernel.name, tuple(places), kernel.dim_args)

    def _repeat(self, item: WhileStep) -> CountedLoop:
        begin, going = (self.memory.place(v) if v else None for v in (item.begin, item.going))
        carried = tuple(map(self._carried, item.carried))
        attrs, actions = item.attrs, self.actions(item.items)
        trip_count, dim = attrs.trip_count, attrs.trip_count_dim
        return CountedLoop(attrs.induction_var, trip_count, actions, carried, begin, going, dim)

    def _carried(self, carry: CarriedValue) -> LoopCarried:
        t, place = self.program.tensor(carry.result), self.memory.place
        return LoopCarried(
            self.program.carried[carry.read],
            self.program.carried[carry.written],
            place(carry.initial),
            place(carry.result),
            place(carry.spare),
            simplify(t.elements * t.dtype.bytes),
        )

    def _status(self, message: str, loc: Loc) -> int:
        """The number with which a run ends that this message explains."""
        status = len(self.errors) + 1
        self.errors[status] = f"{loc.node}: {message}" if loc.node else message
        return status
