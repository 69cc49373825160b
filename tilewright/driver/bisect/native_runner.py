"""Compiling and running parts of a model for a bisection; the compilations are counted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright.driver.compile_graph import compile_source
from tilewright.driver.extract_node import extract_node
from tilewright.driver.kernel.backend import ScheduleProvider
from tilewright.driver.options import CompileOptions, Progress, no_progress
from tilewright.ir.graph.nodes import Node
from tilewright.ir.loop.nodes import Func
from tilewright.ir.types import Type
from tilewright.runtime.cpu.executable import Executable
from tilewright.schedule.builtin.rules import ScheduledFunc
from tilewright.schedule.trace import Trace
from tilewright.target.cpu import CpuTarget


@dataclass
class NativeRunner:
    """Compiles for this machine and runs at once; `compilations` counts."""

    target: CpuTarget
    precision: str = "f32"
    threads: int | None = None
    progress: Progress = no_progress
    compilations: int = 0

    def run(
        self,
        source: Any,
        inputs: Mapping[str, np.ndarray],
        dims: Mapping[str, int] | None = None,
        schedule: ScheduleProvider | None = None,
    ) -> list[np.ndarray]:
        """The outputs of a model, or of a graph whose nodes are kernels already."""
        self.compilations += 1
        self.progress(f"compilation {self.compilations}")
        options = CompileOptions(self.target, self.precision, dims or {}, schedules=schedule)
        container = compile_source(source, options).container()
        with Executable(container, threads=self.threads) as model:
            found = model.run({port.name: inputs[port.name] for port in model.inputs})
        return list(found.values())

    def run_unscheduled(
        self,
        node: Node,
        arrays: Sequence[np.ndarray | None],
        types: Sequence[Type | None],
        sizes: Mapping[str, int],
    ) -> list[np.ndarray]:
        """A node without a schedule: for loops that would take too long to interpret."""
        graph, inputs = extract_node(node, arrays, types, sizes, frozenset())
        return self.run(graph, inputs, schedule=unscheduled)


def unscheduled(func: Func, constants: frozenset[str], target: CpuTarget) -> ScheduledFunc:
    """The loops as they are."""
    return ScheduledFunc(func, Trace(), "opaque")
