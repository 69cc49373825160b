"""Which node each check of a kernel belongs to, and kernels without checks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tilewright.arith.checked_index import CheckedIndex
from tilewright.arith.expr import Expr
from tilewright.arith.walk import rewrite
from tilewright.ir.graph.nodes import Node
from tilewright.ir.loop.nodes import Func
from tilewright.ir.loop.walk import map_exprs
from tilewright.ir.types import Type
from tilewright.ops.registry import get_op


def checked_nodes(node: Node, types: Sequence[Type | None]) -> tuple[Node, ...]:
    """The node of each check of a kernel, by its site; `types` are those of the kernel's inputs."""
    if not node.regions:
        return (node,) * get_op(node.op).checks(node.attrs, types)
    group = node.regions[0]
    return tuple(
        inner
        for inner in group.nodes
        for _ in range(_checks(inner, [group.types[i] if i else None for i in inner.inputs]))
    )


def _checks(node: Node, types: Sequence[Type | None]) -> int:
    return get_op(node.op).checks(node.attrs, types)


def without_checks(func: Func) -> Func:
    """The function with indices as they are: clamped, not reported."""

    def index(e: Expr) -> Expr | None:
        return e.index if isinstance(e, CheckedIndex) else None

    return replace(func, body=map_exprs(func.body, lambda e: rewrite(e, index)))
