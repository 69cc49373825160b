"""The kernels of a model: steps that compute the same share one.

Layers of a model repeat. Two steps are equal by what their nodes compute, which is compared far
more often than a kernel is made; and different steps may still be lowered to the same loops.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tilewright.driver.kernel.kernel import Kernel
from tilewright.driver.program.steps import KernelStep
from tilewright.ir.loop.nodes import Annotations
from tilewright.lower.lower_kernel import LoweredKernel

# Kernels are named after their operators; longer names are cut.
MAX_CHARACTERS = 60

OnNew = Callable[[str, str], object]
"""Is given the name and the LLVM text of each kernel as soon as it is made."""


class KernelCache:
    """Kernels by step and by loops; `on_new` is told of each distinct one."""

    def __init__(self, on_new: OnNew = lambda name, llvm: None) -> None:
        self.on_new = on_new
        self.names: set[str] = set()
        self._by_step: dict[tuple[Any, ...], Kernel] = {}
        self._by_loops: dict[str, Kernel] = {}
        self._counts: dict[str, int] = {}

    def of_step(self, step: KernelStep, annotations: Annotations) -> Kernel | None:
        """The kernel of an equal step, if there was one."""
        return self._by_step.get(_step_key(step, annotations))

    def of_loops(self, step: KernelStep, lowered: LoweredKernel) -> Kernel | None:
        """The kernel of a step that was lowered to the same loops, if there was one."""
        found = self._by_loops.get(_loops_key(step, lowered))
        return None if found is None else _with_dims(found, lowered)

    def add(
        self, step: KernelStep, annotations: Annotations, lowered: LoweredKernel, kernel: Kernel
    ) -> Kernel:
        """Keep the kernel of a step, with the step's own dimensions."""
        key = _loops_key(step, lowered)
        if key not in self._by_loops:
            self._by_loops[key] = kernel
            self.on_new(kernel.name, kernel.llvm)
        return self._by_step.setdefault(_step_key(step, annotations), _with_dims(kernel, lowered))

    def new_name(self, title: str) -> str:
        """A name that no other kernel has."""
        base = name = title[:MAX_CHARACTERS]
        while name in self.names:
            self._counts[base] = self._counts.get(base, 1) + 1
            name = f"{base}.{self._counts[base]}"
        self.names.add(name)
        return name


def _with_dims(kernel: Kernel, lowered: LoweredKernel) -> Kernel:
    """The kernel for a step whose dimensions are those of `lowered`."""
    return replace(kernel, lowered=replace(kernel.lowered, dims=lowered.dims))


def _loops_key(step: KernelStep, lowered: LoweredKernel) -> str:
    views = sorted(lowered.parent_shapes.items())
    return f"{lowered.text}{sorted(step.constants)}{views}"


def _step_key(step: KernelStep, annotations: Annotations) -> tuple[Any, ...]:
    """What a step computes, whatever its values are called in the model: equals compare equal."""
    node = step.node
    outer = (node.op, node.attrs, step.types, node.types)
    rest = (step.constants, step.strided, annotations)
    if not node.regions:
        return (*outer, *rest)
    group = node.regions[0]
    constants = tuple((c.name, c.type, c.data.tobytes()) for c in group.constants)
    nodes = tuple((n.op, n.inputs, n.outputs, n.types, n.attrs) for n in group.nodes)
    return (*outer, group.name, group.inputs, constants, nodes, group.outputs, *rest)
