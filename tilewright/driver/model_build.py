"""A model with all its kernels made and its memory planned, before it becomes object code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from tilewright.codegen.host.plan import ExecutionPlan
from tilewright.driver.kernel.kernel import Kernel
from tilewright.driver.options import CompileOptions
from tilewright.driver.program.buffer_assignment import BufferAssignment
from tilewright.driver.program.host_program import HostProgram
from tilewright.driver.program.steps import StepSequence
from tilewright.ir.graph.nodes import Graph, Node
from tilewright.passes.context import PassLog
from tilewright.target.target import Target


class BuiltStep(NamedTuple):
    """A kernel call: the node that it computes, and the kernel."""

    node: Node
    kernel: Kernel


@dataclass(frozen=True)
class ModelBuild:
    """The fused graph, its steps, one kernel a step, where values lie, and the host program."""

    graph: Graph
    options: CompileOptions
    program: StepSequence
    kernels: Sequence[Kernel]
    memory: BufferAssignment
    host: HostProgram

    @property
    def target(self) -> Target:
        """The machine that it is for."""
        return self.options.target

    @property
    def precision(self) -> str:
        """The precision that it is allowed."""
        return self.options.precision

    @property
    def log(self) -> PassLog:
        """What the graph passes did."""
        return self.options.clock.passes

    @property
    def code(self) -> ExecutionPlan:
        """The code around the kernels."""
        return self.host.code

    @cached_property
    def steps(self) -> list[BuiltStep]:
        """All kernel calls in order, those of branches and loops included."""
        pairs = zip(self.program.steps, self.kernels, strict=True)
        return [BuiltStep(step.node, kernel) for step, kernel in pairs]

    @cached_property
    def distinct_kernels(self) -> dict[str, Kernel]:
        """The kernels by name."""
        return {kernel.name: kernel for kernel in self.kernels}
