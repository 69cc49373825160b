"""Every value of a model as its machine code computes it: a model with all of them as outputs.

Kernels and their order are those of the model; only values that would be in the arena are in
buffers of the caller, where nothing can overwrite them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tilewright.arith.evaluate import evaluate
from tilewright.driver.program.linearize import linearize
from tilewright.driver.program.steps import StepSequence
from tilewright.ir.graph.nodes import Graph


@dataclass(frozen=True)
class Probe:
    """A model that also gives the values in `exposed`, and where other values lie in them."""

    graph: Graph
    exposed: tuple[str, ...]
    program: StepSequence

    def values(
        self, outputs: Sequence[np.ndarray], sizes: Mapping[str, int]
    ) -> dict[str, np.ndarray]:
        """The values that a run has given, by name, and those that lie in them."""
        known: dict[str, np.ndarray] = {}
        for name, array in zip(self.graph.outputs, outputs, strict=True):
            known[name] = array
            known.setdefault(self.program.base_buffer(name), array)
        found = {}
        for name in self.graph.types:
            value = self._value(name, known, sizes)
            if value is not None:
                found[name] = value
        return found

    def _value(
        self, name: str, known: Mapping[str, np.ndarray], sizes: Mapping[str, int]
    ) -> np.ndarray | None:
        shape = [evaluate(d, sizes) for d in self.program.shape(name)]
        if name in known:
            return known[name].reshape(shape)
        inside = self.program.subviews.get(name)
        parent = None if inside is None else self._value(inside.parent, known, sizes)
        if inside is None or parent is None:
            return None
        if inside.starts is None:
            return parent.reshape(shape)
        starts = [evaluate(s, sizes) for s in inside.starts]
        ends = [s + evaluate(d, sizes) for s, d in zip(starts, inside.shape, strict=True)]
        return parent[tuple(map(slice, starts, ends))].reshape(shape)


def values_in_memory(graph: Graph) -> list[str]:
    """The values that have places of their own in the arena, in the order of being computed."""
    program = linearize(graph)
    outputs = {program.base_buffer(o) for o in graph.outputs}
    written = (o for step in program.steps for o in step.node.outputs)
    buffers = dict.fromkeys(map(program.base_buffer, written))
    return [name for name in buffers if name in graph.types and name not in outputs]


def probe(graph: Graph, exposed: Sequence[str]) -> Probe:
    """The model with these values as further outputs."""
    wider = replace(graph, outputs=(*graph.outputs, *exposed))
    return Probe(wider, tuple(exposed), linearize(graph))
