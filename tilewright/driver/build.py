"""A fused graph → everything a saved model holds: object code, weights, manifest.

Every value gets a place: graph inputs and outputs in the caller's buffers, constants in the
weights, everything else in the arena, where views and in-place results share the bytes of what they
read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from tilewright.arith.expr import Expr
from tilewright.arith.simplify import simplify
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
    place,
)
from tilewright.core.errors import Loc
from tilewright.driver.artifact.packed_weights import WeightTable
from tilewright.driver.kernel.backend import backend_of
from tilewright.driver.kernel.kernels import Kernel, KernelLibrary, Made, MakeSchedule
from tilewright.driver.program.host_predicates import asked_name
from tilewright.driver.program.inter_op import moments
from tilewright.driver.program.linearize import (
    Carry,
    Cycle,
    Flat,
    Item,
    Learned,
    Step,
    flatten,
    limit,
)
from tilewright.ir.graph.nodes import Check, Graph, Node
from tilewright.ir.loop.nodes import Layout
from tilewright.ir.types import Shape, TensorType
from tilewright.passes.memory.plan_memory import LiveRange, MemoryPlan, plan_memory
from tilewright.target.target import Target

# The module that calls the kernels one after another.
ENTRY = "tw_model"


@dataclass
class ModelBuild:
    """The parts of a compiled model, before they are written."""

    graph: Graph
    target: Target
    flat: Flat = field(default_factory=Flat)
    weights: WeightTable = field(default_factory=WeightTable)
    buffers: list[LiveRange] = field(default_factory=list)
    plan: MemoryPlan | None = None
    code: ExecutionPlan | None = None
    # What a run that ends with a status other than 0 means.
    errors: dict[int, str] = field(default_factory=dict)
    precision: str = "f32"

    @property
    def steps(self) -> list[Step]:
        """All kernel calls in order, those of branches included."""
        return self.flat.steps


def build_model(
    graph: Graph,
    target: Target,
    overrides: Path | None = None,
    precision: str = "f32",
    made: Made = lambda kernel: None,
    schedule: MakeSchedule | None = None,
) -> ModelBuild:
    """Kernels for every group, a place for every value, and the calls that make up the model.

    Kernels that have a file in the folder `overrides` are taken from there; `made` is told of each
    kernel while others are still to come. Without `schedule` kernels get the built-in ones.
    """
    library = KernelLibrary(target, overrides, made, schedule)

    def kernel(graph: Graph, n: Node, rooms: dict[str, Shape], aligned: bool) -> Kernel:
        types = [graph.types[i] if i else None for i in n.inputs]
        values = (*(i for i in n.inputs if i), *n.outputs)
        wide = tuple((i, rooms[name]) for i, name in enumerate(values) if name in rooms)
        return library.kernel(n, types, _packable(graph, n), wide, aligned)

    flat = flatten(graph, kernel, backend_of(target).asks)
    build = ModelBuild(graph, target, flat, precision=precision)
    library.check_overrides()
    placer = _Placer(build)
    build.buffers = placer.lifetimes()
    build.plan = plan = plan_memory(build.buffers, backend_of(target).apart)
    shapes = tuple(graph.tensor_type(o).shape for o in graph.outputs)
    names = map(asked_name, range(len(graph.inputs)))
    build.code = ExecutionPlan(
        graph.symbols(),
        placer.actions(build.flat.items),
        shapes,
        plan.peak,
        plan.placement,
        tuple(build.flat.late),
        tuple((name, n) for n, name in enumerate(names) if name in flat.consulted),
    )
    build.errors = placer.errors
    return build


def _packable(graph: Graph, n: Node) -> frozenset[int]:
    """The parameters of a kernel that are constants; absent inputs are no parameters."""
    given = [name for name in n.inputs if name]
    return frozenset(i for i, name in enumerate(given) if name in graph.constant_by_name)


class _Placer:
    """Assigns every value to an input, an output, the weights or a buffer of the arena."""

    def __init__(self, build: ModelBuild) -> None:
        self.build = build
        self.graph = build.graph
        self.flat = build.flat
        self.root_of = build.flat.root_of
        self.fixed = self._fixed_places()
        self.moment = moments(build.flat)
        self.beside = Counter(self.moment)
        self.last_use = self._last_uses()
        self.shared: dict[str, str] = {}
        self.errors: dict[int, str] = {}
        self._number = 0

    def _fixed_places(self) -> dict[str, BufferRef]:
        places = {v.name: place("input", i) for i, v in enumerate(self.graph.inputs)}
        for i, out in enumerate(self.graph.outputs):
            places[self.root_of(out)] = place("output", i)
        carried = self.flat.carried.items()
        return places | {value: place("carried", number) for value, number in carried}

    def _last_uses(self) -> dict[str, int]:
        last = {self.root_of(name): number for name, number in self.flat.decided.items()}
        for number, step in enumerate(self.build.steps):
            for root in map(self.root_of, step.node.inputs):
                last[root] = max(last.get(root, 0), self.moment[number])
        return last

    def lifetimes(self) -> list[LiveRange]:
        """The buffers of the arena; an in-place result extends the life of what it overwrites.

        The steps of branches count on one after the other, so that what they compute shares bytes;
        a result of both lives from where the first one writes it, and a result of a loop from its
        first step on. Steps that run side by side are one moment.
        """
        born: dict[str, int] = {}
        ends: dict[str, int] = {}
        for value, (first, last) in self.flat.held.items():
            root = self.root_of(value)
            if root not in self.fixed:
                self.shared[root] = root
                born[root] = min(born.get(root, first), first)
                ends[root] = max(ends.get(root, 0), last, self.last_use.get(root, 0))
        for number, step in zip(self.moment, self.build.steps, strict=True):
            for output in step.node.outputs:
                root = self.root_of(output)
                if root in self.fixed:
                    continue
                if root not in self.shared:
                    self.shared[root] = self._in_place(number, step, output, ends) or root
                owner = self.shared[root]
                born.setdefault(owner, number)
                ends[owner] = max(ends.get(owner, 0), self.last_use.get(root, 0), number)
        buffers = [
            LiveRange(name, self._bytes(name), first, ends[name]) for name, first in born.items()
        ]
        for number, step in enumerate(self.build.steps):
            for i, w in enumerate(step.kernel.workspaces):
                size = simplify(w.shape[0] * w.dtype.bytes)
                size = limit(size, self.flat.limits)
                moment = self.moment[number]
                buffers.append(LiveRange(_workspace(number, i), size, moment, moment))
        return buffers

    def _in_place(self, number: int, step: Step, output: str, ends: dict[str, int]) -> str | None:
        """The arena buffer that the step's result may overwrite: one that dies here.

        A kernel may read the same bytes a second time, under another shape; then they must stay.
        Neither may be a part of another value, which has other elements before it. What runs beside
        the step may read them too.
        """
        if self.beside[number] > 1 or not self.flat.is_contiguous(output):
            return None
        inputs = step.node.inputs
        roots = [self.root_of(name) for name in inputs]
        for i in step.kernel.in_place:
            owner = self.shared.get(roots[i])
            if owner is None or roots.count(roots[i]) > 1 or not self.flat.is_contiguous(inputs[i]):
                continue
            if self.last_use[roots[i]] == number and ends[owner] == number:
                return owner
        return None

    def _bytes(self, value: str) -> Expr:
        t = self.flat.types[value]
        assert isinstance(t, TensorType)
        return limit(simplify(t.elements * t.dtype.bytes), self.flat.limits)

    def place(self, value: str, layout: Layout | None = None) -> BufferRef:
        """Where a value's bytes are."""
        root = self._root_place(self.root_of(value), layout)
        if value not in self.flat.inside:
            return root
        t = self.flat.types[value]
        assert isinstance(t, TensorType)
        return replace(root, start=simplify(self.flat.spot(value).start * t.dtype.bytes))

    def _root_place(self, root: str, layout: Layout | None) -> BufferRef:
        if root in self.fixed:
            return self.fixed[root]
        constant = self.flat.constants.get(root)
        if constant is not None:
            return place("weights", self.build.weights.offset(constant, layout))
        assert self.build.plan is not None
        return BufferRef("arena", self.build.plan.offsets[self.shared[root]])

    def actions(self, items: Sequence[Item]) -> tuple[Action, ...]:
        """What the native code does for each step; for those that run side by side, at once."""
        found: list[Action] = []
        for item in items:
            action = self._action(item)
            if isinstance(action, KernelCall) and self.moment[self._number - 1] < self._number - 1:
                before = found.pop()
                calls = before.calls if isinstance(before, ParallelCalls) else (before,)
                action = ParallelCalls((*calls, action))
            found.append(action)
        return tuple(found)

    def _action(self, item: Item) -> Action:
        if isinstance(item, Step):
            self._number += 1
            return self.call(self._number - 1, item)
        if isinstance(item, Check):
            return CheckSizes(item.condition, self._status(item.message, item.loc))
        if isinstance(item, Learned):
            message = f"size {item.name} is more than {item.limit}, or negative"
            status = self._status(message, item.loc)
            return ReadSize(item.name, self.place(item.value), item.limit, status)
        if isinstance(item, Cycle):
            return self._repeat(item)
        decides = item.condition
        condition = decides if isinstance(decides, Expr) else self.place(decides)
        then, other = (self.actions(branch) for branch in item.branches)
        late = tuple((name, *pair) for name, pair in item.late.items())
        return Conditional(condition, then, other, late)

    def _repeat(self, item: Cycle) -> CountedLoop:
        begin, going = (self.place(v) if v else None for v in (item.begin, item.going))
        carried = tuple(map(self._carried, item.carried))
        attrs, actions = item.attrs, self.actions(item.items)
        return CountedLoop(attrs.counter, attrs.count, actions, carried, begin, going, attrs.late)

    def _carried(self, carry: Carry) -> LoopCarried:
        t = self.flat.types[carry.result]
        assert isinstance(t, TensorType)
        return LoopCarried(
            self.flat.carried[carry.read],
            self.flat.carried[carry.written],
            self.place(carry.initial),
            self.place(carry.result),
            self.place(carry.spare),
            simplify(t.elements * t.dtype.bytes),
        )

    def _status(self, message: str, loc: Loc) -> int:
        """The number with which a run ends that this message explains."""
        status = len(self.errors) + 1
        self.errors[status] = f"{loc.node}: {message}" if loc.node else message
        return status

    def call(self, number: int, step: Step) -> KernelCall:
        """The call of one step."""
        node, kernel = step.node, step.kernel
        given = [v for v in node.inputs if v]
        places = [self.place(v, kernel.layouts.get(i)) for i, v in enumerate(given)]
        places += [self.place(v) for v in node.outputs]
        assert self.build.plan is not None
        for i in range(len(kernel.workspaces)):
            places.append(BufferRef("arena", self.build.plan.offsets[_workspace(number, i)]))
        return KernelCall(kernel.name, tuple(places), kernel.given)


def _workspace(step: int, index: int) -> str:
    return f"workspace.{step}.{index}"


def emit_kernel(kernel: Kernel, target: Target, precision: str) -> str:
    """The LLVM text of a kernel's module."""
    return backend_of(target).emit(kernel.plain, kernel.sizes, target, precision)
