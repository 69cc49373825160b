"""Common subexpression elimination: equal nodes, and equal constants, become one.

%0 = exp(%x)                       %0 = exp(%x)
%1 = exp(%x)              →        %2 = add(%0, %0)
%2 = add(%0, %1)

Every operator is a function of its operands and attributes; only nodes with regions are left alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from dataclasses import replace

from tilewright.ir.graph.constant_hash import content_hash
from tilewright.ir.graph.nodes import Constant, Graph, Node
from tilewright.passes.context import PassContext
from tilewright.passes.rewriter import renamed_inputs

# Constants up to this many bytes are compared by content, larger ones by where their bytes are.
HASHED_BYTES = 1 << 16


def cse(graph: Graph, context: PassContext) -> Graph:
    """Compute what several nodes compute alike once, and keep equal constants once."""
    names: dict[str, str] = {}
    constants = _merge_constants(graph, names)
    first: dict[Hashable, Node] = {}
    nodes: list[Node] = []
    for original in graph.nodes:
        n = renamed_inputs(original, names)
        key = (n.op, n.inputs, n.attrs, n.types)
        found = n if n.regions else first.setdefault(key, n)
        if found is n:
            nodes.append(n)
        else:
            names.update(zip(n.outputs, found.outputs, strict=True))
    if not names:
        return graph
    outputs = tuple(names.get(o, o) for o in graph.outputs)
    return replace(graph, constants=constants, nodes=tuple(nodes), outputs=outputs)


def _merge_constants(graph: Graph, names: dict[str, str]) -> tuple[Constant, ...]:
    glances = [_glance(c) for c in graph.constants]
    alike = Counter(glances)
    first: dict[Hashable, Constant] = {}
    for c, glance in zip(graph.constants, glances, strict=True):
        found = first.setdefault(glance if alike[glance] == 1 else _identity(c), c)
        if found is not c:
            names[c.name] = found.name
    return tuple(first.values())


def _glance(c: Constant) -> Hashable:
    """What constants that hold the same share, and most others do not: seen without reading all."""
    ends = ((0,) * c.data.ndim, (-1,) * c.data.ndim) if c.data.size else ()
    return c.type, *(c.data[end].tobytes() for end in ends)


def _identity(c: Constant) -> Hashable:
    """What two constants share if they hold the same: a hash, or the very bytes in memory."""
    if c.data.nbytes <= HASHED_BYTES:
        return content_hash(c.data)
    return c.type, c.data.__array_interface__["data"][0], c.data.strides
