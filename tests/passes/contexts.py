"""Contexts to run single passes in."""

from __future__ import annotations

from tilewright.ir.graph.nodes import Graph
from tilewright.passes.context import Pass, PassContext, PrecisionNote
from tilewright.target.host import host
from tilewright.target.registry import CUDA, resolve_gpu
from tilewright.target.target import Target

ON_CPU = PassContext(host())
ON_GPU = PassContext(resolve_gpu(CUDA))


def noted(
    p: Pass, graph: Graph, target: Target, precision: str
) -> tuple[Graph, list[PrecisionNote]]:
    """A graph after a pass for a precision, and the notes that the pass took."""
    context = PassContext(target, precision)
    return p(graph, context), context.log.precision
