"""Decision trees: which leaf of each tree a row of features leads to.

All trees are one list of nodes: node `k` goes on with `yes[k]` where feature `feature[k]` is at
most `value[k]`, else with `no[k]`; a leaf goes on with itself. So every path has the same length.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.arith.expr import Expr, Load, call, const, maximum, minimum, select
from tilewright.core.dtypes import BOOL, I64
from tilewright.core.node import node
from tilewright.ir.graph.nodes import Attrs
from tilewright.ir.loop.nodes import For, Func, Seq, Stmt, Store
from tilewright.ir.types import TensorType
from tilewright.ops.loop_builder import parameters, spatial_block
from tilewright.ops.op import Op, fail


@node
class TreesAttrs(Attrs):
    """The number of steps from a root to its farthest leaf."""

    depth: int


def _type(attrs: TreesAttrs, ins: Sequence[TensorType]) -> TensorType:
    x, roots, *nodes = ins
    if x.rank != 2 or not x.dtype.is_float or roots.rank != 1 or len(nodes) not in (4, 5):
        raise fail("decision_trees", f"features {x} with roots {roots}")
    feature, value, yes, no = nodes[:4]
    missing = nodes[4:]
    shapes = {t.shape for t in nodes}
    if len(shapes) != 1 or feature.rank != 1 or value.dtype != x.dtype:
        raise fail("decision_trees", f"{value} is not one number of the features' type a node")
    if any(t.dtype != I64 for t in (roots, feature, yes, no)):
        raise fail("decision_trees", "nodes and features are not numbered in i64")
    if any(t.dtype != BOOL for t in missing):
        raise fail("decision_trees", "what a missing feature decides is not bool")
    return TensorType(I64, (x.shape[0], roots.shape[0]))


def _decision_trees(
    attrs: TreesAttrs, ins: Sequence[TensorType], outs: Sequence[TensorType]
) -> Func:
    x, count = ins[0], ins[2].shape[0]

    def bounded(index: Expr, size: Expr) -> Expr:
        """An index in bounds, whatever the tables say."""
        return minimum(maximum(index, 0), size - 1)

    def body(n: Expr, tree: Expr) -> Stmt:
        at = bounded(Load("y0", (n, tree), I64), count)
        feature = bounded(Load("x2", (at,), I64), x.shape[1])
        given = Load("x0", (n, feature), x.dtype)
        goes = given <= Load("x3", (at,), x.dtype)
        if len(ins) == 7:
            goes = goes | (call("isnan", given) & Load("x6", (at,), BOOL))
        chosen = select(goes, Load("x4", (at,), I64), Load("x5", (at,), I64))
        walk = For("at.step", const(attrs.depth), "serial", Store("y0", (n, tree), chosen))
        return Seq((Store("y0", (n, tree), Load("x1", (tree,), I64)), walk))

    buffers = parameters(ins, outs)
    block = spatial_block("decision_trees", outs[0].shape, body, buffers)
    return Func("decision_trees", tuple(buffers.values()), ("y0",), block)


OPS = (
    Op(
        "decision_trees",
        _type,
        "opaque",
        TreesAttrs,
        loops=_decision_trees,
        flops=lambda a, ins, outs: outs[0].elements * const(4 * max(a.depth, 1)),
        doc="The node that each row of features ends in, one a tree.",
    ),
)
