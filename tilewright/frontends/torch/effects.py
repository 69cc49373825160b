"""What a graph of torch does in order, by tokens: checks whether factorizations have succeeded.

%token1 = with_effects(%token0, aten._linalg_check_errors, %info, "torch.linalg.solve", ...)
"""

from __future__ import annotations

from collections.abc import Sequence

from torch.fx import Node

from tilewright.arith.expr import as_int, const
from tilewright.core.dtypes import I64
from tilewright.core.errors import UnsupportedError
from tilewright.frontends.torch.source_location import place_of
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.ops.reduction.reduce import ReduceAttrs
from tilewright.ops.tensor.indexing import GatherAttrs


def is_token(node: Node) -> bool:
    """Whether an argument is what effects are ordered by, which holds nothing."""
    return any(str(user.target) == "with_effects" and user.args[0] is node for user in node.users)


def checked_info(node: Node) -> Node:
    """What a check wants to be 0 everywhere."""
    _, op, *given = node.args
    if str(op) != "aten._linalg_check_errors.default":
        raise UnsupportedError(
            "torch.operator",
            f"the operator {op} has an effect, which is not supported",
            loc=place_of(node),
            help="leave it outside of what is compiled",
        )
    info = given[0]
    assert isinstance(info, Node)
    return info


def if_all_zero(g: GraphBuilder, infos: Sequence[str], x: str) -> str:
    """A value, by way of an index that is inside only if every one of `infos` is 0."""
    for info in infos:
        t = g.type(info)
        if as_int(t.elements) == 0:
            continue
        every = ReduceAttrs(tuple(range(t.rank)), keepdims=False)
        worst = g.add("reduce_max", g.cast(info, I64), attrs=every, name="info")
        rows = g.reshape(x, (const(1), *g.type(x).shape))
        x = g.add("gather", rows, worst, attrs=GatherAttrs(0), name="checked")
    return x
