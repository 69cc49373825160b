"""A fused graph → everything a saved model holds: object code, weights, manifest.

Every value gets a place: graph inputs and outputs in the caller's buffers, constants in the
weights, everything else in the arena, where views and in-place results share the bytes of what they
read.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from tilewright.arith.expr import Expr
from tilewright.arith.simplify import simplify
from tilewright.codegen.clock import CLOCK_IR
from tilewright.codegen.function import ModuleText
from tilewright.codegen.llvm import compile_object
from tilewright.codegen.model import KernelCall, ModelCode, Place, emit_model, place
from tilewright.codegen.statements import emit_func
from tilewright.codegen.threadpool import threadpool_ir
from tilewright.driver.kernels import Kernel, KernelLibrary
from tilewright.driver.weights import WeightTable
from tilewright.ir.graph.nodes import Graph, Node
from tilewright.ir.loop.nodes import Layout
from tilewright.ir.types import TensorType
from tilewright.ops.table import op_row
from tilewright.passes.plan_memory import Lifetime, MemoryPlan, plan_memory
from tilewright.target.cpu import Target


@dataclass(frozen=True)
class Step:
    """One kernel call: the node it came from, and the kernel."""

    node: Node
    kernel: Kernel


@dataclass
class ModelBuild:
    """The parts of a compiled model, before they are written."""

    graph: Graph
    target: Target
    steps: list[Step] = field(default_factory=list)
    weights: WeightTable = field(default_factory=WeightTable)
    buffers: list[Lifetime] = field(default_factory=list)
    plan: MemoryPlan | None = None
    code: ModelCode | None = None


def build_model(graph: Graph, target: Target, overrides: Path | None = None) -> ModelBuild:
    """Kernels for every group, a place for every value, and the calls that make up the model.

    Kernels that have a file in the folder `overrides` are taken from there.
    """
    build = ModelBuild(graph, target)
    library = KernelLibrary(target, overrides)
    for n in graph.nodes:
        if not _is_view(n):
            types = [graph.types[i] if i else None for i in n.inputs]
            build.steps.append(Step(n, library.kernel(n, types, _packable(graph, n))))
    library.check_overrides()
    placer = _Placer(build)
    build.buffers = placer.lifetimes()
    build.plan = plan_memory(build.buffers)
    calls = tuple(placer.call(number, step) for number, step in enumerate(build.steps))
    shapes = tuple(graph.tensor_type(o).shape for o in graph.outputs)
    plan = build.plan
    build.code = ModelCode(graph.symbols(), calls, shapes, plan.peak, plan.placement)
    return build


def _is_view(n: Node) -> bool:
    return n.op != "fused" and op_row(n.op).kind == "view"


def _packable(graph: Graph, n: Node) -> frozenset[int]:
    """The parameters of a kernel that are constants; absent inputs are no parameters."""
    given = [name for name in n.inputs if name]
    return frozenset(i for i, name in enumerate(given) if name in graph.constant_by_name)


class _Placer:
    """Assigns every value to an input, an output, the weights or a buffer of the arena."""

    def __init__(self, build: ModelBuild) -> None:
        self.build = build
        self.graph = build.graph
        self.root: dict[str, str] = {}
        for n in self.graph.nodes:
            if _is_view(n):
                self.root[n.outputs[0]] = self.root_of(n.inputs[0])
        self.fixed = self._fixed_places()
        self.last_use = self._last_uses()
        self.shared: dict[str, str] = {}

    def root_of(self, value: str) -> str:
        """The value whose bytes `value` is a view of."""
        return self.root.get(value, value)

    def _fixed_places(self) -> dict[str, Place]:
        places = {v.name: place("input", i) for i, v in enumerate(self.graph.inputs)}
        for i, out in enumerate(self.graph.outputs):
            places[self.root_of(out)] = place("output", i)
        return places

    def _last_uses(self) -> dict[str, int]:
        last: dict[str, int] = {}
        for number, step in enumerate(self.build.steps):
            for name in step.node.inputs:
                last[self.root_of(name)] = number
        return last

    def lifetimes(self) -> list[Lifetime]:
        """The buffers of the arena; an in-place result extends the life of what it overwrites."""
        born: dict[str, int] = {}
        ends: dict[str, int] = {}
        for number, step in enumerate(self.build.steps):
            reused = self._in_place(number, step, ends)
            for name in step.node.outputs:
                if name in self.fixed:
                    continue
                owner = reused if reused is not None else name
                self.shared[name] = owner
                born.setdefault(owner, number)
                ends[owner] = max(ends.get(owner, 0), self.last_use.get(name, number))
        buffers = [
            Lifetime(name, self._bytes(name), first, ends[name]) for name, first in born.items()
        ]
        for number, step in enumerate(self.build.steps):
            for i, w in enumerate(step.kernel.workspaces):
                size = simplify(w.shape[0] * w.dtype.bytes)
                buffers.append(Lifetime(_workspace(number, i), size, number, number))
        return buffers

    def _in_place(self, number: int, step: Step, ends: dict[str, int]) -> str | None:
        """The arena buffer that the step's result may overwrite: one that dies here.

        A kernel may read the same bytes a second time, under another shape; then they must stay.
        """
        roots = [self.root_of(name) for name in step.node.inputs]
        for i in step.kernel.in_place:
            owner = self.shared.get(roots[i])
            if owner is None or roots.count(roots[i]) > 1:
                continue
            if self.last_use[roots[i]] == number and ends[owner] == number:
                return owner
        return None

    def _bytes(self, value: str) -> Expr:
        t = self.graph.types[value]
        assert isinstance(t, TensorType)
        return simplify(t.elements * t.dtype.bytes)

    def place(self, value: str, layout: Layout | None = None) -> Place:
        """Where a value's bytes are."""
        root = self.root_of(value)
        if root in self.fixed:
            return self.fixed[root]
        constant = self.graph.constant_by_name.get(root)
        if constant is not None:
            return place("weights", self.build.weights.offset(constant, layout))
        assert self.build.plan is not None
        return Place("arena", self.build.plan.offsets[self.shared[root]])

    def call(self, number: int, step: Step) -> KernelCall:
        """The call of one step."""
        node, kernel = step.node, step.kernel
        given = [v for v in node.inputs if v]
        places = [self.place(v, kernel.layouts.get(i)) for i, v in enumerate(given)]
        places += [self.place(v) for v in node.outputs]
        assert self.build.plan is not None
        for i in range(len(kernel.workspaces)):
            places.append(Place("arena", self.build.plan.offsets[_workspace(number, i)]))
        return KernelCall(kernel.name, tuple(places), kernel.sizes)


def _workspace(step: int, index: int) -> str:
    return f"workspace.{step}.{index}"


def emit_modules(build: ModelBuild) -> dict[str, str]:
    """The LLVM text of every module of the model, by name."""
    assert build.code is not None
    texts: dict[str, str] = {}
    for step in build.steps:
        if step.kernel.name not in texts:
            module = ModuleText()
            emit_func(module, step.kernel.plain, step.kernel.sizes)
            texts[step.kernel.name] = module.text()
    texts["tw_model"] = emit_model(build.code)
    texts["tw_runtime"] = threadpool_ir(build.target.triple)
    texts["tw_clock"] = CLOCK_IR
    return texts


def compile_modules(texts: dict[str, str], target: Target) -> dict[str, bytes]:
    """Object code for every module."""
    return {name: compile_object(text, target) for name, text in texts.items()}
