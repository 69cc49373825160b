"""Restore the names of the model's outputs.

Passes keep the order of outputs, not their names: a removed `identity` leaves its operand's name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tilewright.ir.graph.nodes import Graph


def name_outputs(graph: Graph, names: Sequence[str]) -> Graph:
    """Rename the outputs to `names`, in order; a name that an input has is not given away.

    Of several outputs that are to have one name, the first one gets it. Every output must be
    computed by a node, as `copy_aliased_outputs` makes sure.
    """
    taken = {v.name for v in graph.inputs}
    wanted: dict[str, str] = {}
    for output, name in zip(graph.outputs, names, strict=True):
        if output != name and name not in taken:
            wanted[output] = name
        taken.add(name)
    if not wanted:
        return graph
    renames = {**_moved_aside(graph, wanted), **wanted}

    def new(name: str) -> str:
        return renames.get(name, name)

    return replace(
        graph,
        constants=tuple(
            replace(c, name=new(c.name)) if c.name in renames else c for c in graph.constants
        ),
        nodes=tuple(
            n.rewired(tuple(map(new, n.inputs)), tuple(map(new, n.outputs))) for n in graph.nodes
        ),
        outputs=tuple(map(new, graph.outputs)),
    )


def _moved_aside(graph: Graph, wanted: dict[str, str]) -> dict[str, str]:
    """New names for other values that have a name which an output is to get."""
    taken = set(graph.types) | set(wanted.values())
    aside: dict[str, str] = {}
    for name in wanted.values():
        if name in graph.types and name not in wanted:
            fresh = f"{name}.inner"
            while fresh in taken:
                fresh += "_"
            taken.add(fresh)
            aside[name] = fresh
    return aside
