"""Factor concatenations: those of many operands, or of operands with a common prefix, are nested.

%1 = concat(%a, %b)                %1 = concat(%a, %b)
%2 = concat(%a, %b, %c)    →       %2 = concat(%1, %c)

Densely connected layers then share one tensor, of which each reads more. A kernel that selects
among many operands is slow to compile: beyond a few they are concatenated in pieces first, and
`eliminate_concat` avoids a second copy of a piece.
"""

from __future__ import annotations

from tilewright.ir.graph.nodes import Graph, Node
from tilewright.ops.op import normalize_axis
from tilewright.ops.registry import get_op
from tilewright.ops.tensor.slicing import ConcatAttrs
from tilewright.passes.context import PassContext
from tilewright.passes.rewriter import Rewriter, rewrite_graph

MAX_PARTS = 16

Parts = tuple[str, ...]


def factor_concats(graph: Graph, context: PassContext) -> Graph:
    """Join what is joined already, and many parts piece by piece."""
    return rewrite_graph(graph, _Nester().nested, of=("concat",))


class _Nester:
    def __init__(self) -> None:
        # The concatenations so far: by axis and first part, then by length.
        self.known: dict[tuple[int, str], dict[int, dict[Parts, str]]] = {}

    def nested(self, g: Rewriter, n: Node) -> str | None:
        """The concatenation of fewer parts that takes the node's place, if there is one."""
        if not isinstance(n.attrs, ConcatAttrs) or n.op != "concat":
            return None
        axis = normalize_axis(n.op, n.attrs.axis, n.type.rank)
        parts = self._shortest(n.inputs, axis)
        if len(n.inputs) > 1 and any(_is_computed(g, i) for i in n.inputs):
            alike = self.known.setdefault((axis, n.inputs[0]), {})
            alike.setdefault(len(n.inputs), {}).setdefault(n.inputs, n.name)
        while len(parts) > MAX_PARTS:
            pieces = (parts[i : i + MAX_PARTS] for i in range(0, len(parts), MAX_PARTS))
            parts = tuple(_joined(g, piece, n.attrs) for piece in pieces)
        return None if parts == n.inputs else _joined(g, parts, n.attrs)

    def _shortest(self, parts: Parts, axis: int) -> Parts:
        """The parts with the longest run that is known as a concatenation replaced by that."""
        best, at, joined = 1, 0, ""
        for first, part in enumerate(parts):
            by_length = self.known.get((axis, part), {})
            most = min(len(parts) - 1, len(parts) - first)
            for length in sorted((k for k in by_length if best < k <= most), reverse=True):
                name = by_length[length].get(parts[first : first + length])
                if name is not None:
                    best, at, joined = length, first, name
                    break
        return (*parts[:at], joined, *parts[at + best :]) if joined else parts


def _joined(g: Rewriter, parts: Parts, attrs: ConcatAttrs) -> str:
    return parts[0] if len(parts) == 1 else g.add("concat", *parts, attrs=attrs)


def _is_computed(g: Rewriter, name: str) -> bool:
    """Whether a value is the result of arithmetic, not a rearrangement of another."""
    n = g.producer(name)
    return n is not None and n.op != "identity" and get_op(n.op).flops != 0
