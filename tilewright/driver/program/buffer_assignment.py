"""Buffer assignment: where each value of a model lies.

Graph inputs and outputs lie in the caller's buffers, constants in the weights, everything else in
the arena, where views and in-place results share the bytes of what they read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from tilewright.arith.expr import Expr
from tilewright.arith.simplify import simplify
from tilewright.codegen.host.plan import BufferRef, place
from tilewright.driver.artifact.packed_weights import WeightTable
from tilewright.driver.kernel.backend import backend_of
from tilewright.driver.kernel.kernel import Kernel
from tilewright.driver.program.inter_op import parallel_groups
from tilewright.driver.program.linearize import limit
from tilewright.driver.program.steps import StepSequence
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.loop.nodes import Layout
from tilewright.passes.memory.plan_memory import LiveRange, plan_memory
from tilewright.target.target import Target


class BufferAssignment:
    """Assigns every value to an input, an output, the weights or a buffer of the arena.

    `kernels` are those of the program's steps. `groups` has for each step the first of those that
    run at once; live ranges are counted in them.
    """

    def __init__(
        self, graph: Graph, program: StepSequence, kernels: Sequence[Kernel], target: Target
    ) -> None:
        self.program = program
        self.kernels = kernels
        self.weights = WeightTable()
        self.groups = parallel_groups(program, kernels)
        self._group_sizes = Counter(self.groups)
        self._fixed = self._fixed_places(graph)
        self._last_use = self._last_uses()
        # The buffer of the arena that each base buffer shares.
        self._owners: dict[str, str] = {}
        self.live_ranges = [*self._value_ranges(), *self._workspace_ranges()]
        self.plan = plan_memory(self.live_ranges, backend_of(target).no_reuse_up_to)

    def place(self, value: str, layout: Layout | None = None) -> BufferRef:
        """Where a value lies; a constant in this layout."""
        base = self._base_place(self.program.base_buffer(value), layout)
        if value not in self.program.subviews:
            return base
        offset = self.program.strided_view(value).offset
        return replace(base, start=simplify(offset * self.program.tensor(value).dtype.bytes))

    def workspace(self, step: int, index: int) -> BufferRef:
        """Where a workspace of a step lies."""
        return BufferRef("arena", self.plan.offsets[_workspace(step, index)])

    def _base_place(self, base: str, layout: Layout | None) -> BufferRef:
        if base in self._fixed:
            return self._fixed[base]
        constant = self.program.constants.get(base)
        if constant is not None:
            return place("weights", self.weights.offset(constant, layout))
        return BufferRef("arena", self.plan.offsets[self._owners[base]])

    def _fixed_places(self, graph: Graph) -> dict[str, BufferRef]:
        places = {v.name: place("input", i) for i, v in enumerate(graph.inputs)}
        for i, out in enumerate(graph.outputs):
            places[self.program.base_buffer(out)] = place("output", i)
        carried = self.program.carried.items()
        return places | {value: place("carried", number) for value, number in carried}

    def _last_uses(self) -> dict[str, int]:
        program = self.program
        last = {program.base_buffer(v): number for v, number in program.last_control_use.items()}
        for group, step in zip(self.groups, program.steps, strict=True):
            for base in map(program.base_buffer, step.node.inputs):
                last[base] = max(last.get(base, 0), group)
        return last

    def _value_ranges(self) -> list[LiveRange]:
        """The values in the arena; an in-place result extends the life of what it overwrites.

        The steps of branches follow one another, so that their values share bytes; a result of both
        is live from where the first one writes it, and a result of a loop from the loop's first
        step on.
        """
        program, first_use, last_use = self.program, dict[str, int](), dict[str, int]()
        for value, (first, last) in program.live_across_loop.items():
            base = program.base_buffer(value)
            if base not in self._fixed:
                self._owners[base] = base
                first_use[base] = min(first_use.get(base, first), first)
                last_use[base] = max(last_use.get(base, 0), last, self._last_use.get(base, 0))
        for step, group in enumerate(self.groups):
            for output in program.steps[step].node.outputs:
                base = program.base_buffer(output)
                if base in self._fixed:
                    continue
                if base not in self._owners:
                    self._owners[base] = self._overwritten(step, output, last_use) or base
                owner = self._owners[base]
                first_use.setdefault(owner, group)
                last_use[owner] = max(last_use.get(owner, 0), self._last_use.get(base, 0), group)
        return [
            LiveRange(name, self._bytes(name), first, last_use[name])
            for name, first in first_use.items()
        ]

    def _workspace_ranges(self) -> list[LiveRange]:
        """Workspaces are live during their step only."""
        ranges = []
        for step, (group, kernel) in enumerate(zip(self.groups, self.kernels, strict=True)):
            for i, w in enumerate(kernel.workspaces):
                size = limit(simplify(w.shape[0] * w.dtype.bytes), self.program.limits)
                ranges.append(LiveRange(_workspace(step, i), size, group, group))
        return ranges

    def _overwritten(self, step: int, output: str, last_use: dict[str, int]) -> str | None:
        """The arena buffer that a step's result may overwrite: one that dies here.

        A kernel may read the same bytes a second time, under another shape; then they must stay.
        Neither may be a subview, which has other elements before it. Steps that run at the same
        time may read them too.
        """
        program, group = self.program, self.groups[step]
        if self._group_sizes[group] > 1 or not program.is_whole_buffer(output):
            return None
        inputs = program.steps[step].node.inputs
        bases = [program.base_buffer(name) for name in inputs]
        for i in self.kernels[step].lowered.inplace:
            owner = self._owners.get(bases[i])
            if owner is None or bases.count(bases[i]) > 1 or not program.is_whole_buffer(inputs[i]):
                continue
            if self._last_use[bases[i]] == group and last_use[owner] == group:
                return owner
        return None

    def _bytes(self, value: str) -> Expr:
        t = self.program.tensor(value)
        return limit(simplify(t.elements * t.dtype.bytes), self.program.limits)


def _workspace(step: int, index: int) -> str:
    return f"workspace.{step}.{index}"
