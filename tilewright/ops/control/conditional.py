"""Control flow: operators whose meaning is in nested graphs.

    %y: f32[N] = if(%c, %x) { graph @then(x: f32[N]) {...} graph @else(x: f32[N]) {...} }

A nested graph reads its own inputs and constants only: every value it takes from outside is an
operand of the node. The operands behind the condition are the inputs of both branches, in order.
The condition is a truth value that is read when the model runs, or an expression over sizes.

Where the branches give tensors of different sizes, the result's size depends on which is taken: it
is chosen by the expression, or else it is a data-dependent dimension, which has a name and is known
from there on. Ranks and element types must agree.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain, repeat
from typing import Any, NoReturn

from tilewright.arith.expr import Expr, Var, as_int, select
from tilewright.arith.simplify import simplify
from tilewright.core.dtypes import BOOL
from tilewright.core.node import node
from tilewright.ir.graph.nodes import Attrs, Graph, Node
from tilewright.ir.types import TensorType, Type
from tilewright.ops.op import Op, fail

CONTROL = "control"
"""The kind of operators that are made of nested graphs."""


@node
class IfAttrs(Attrs):
    """The condition where it is an expression over sizes; names of data-dependent dimensions.

    `dynamic_dims` has a name for each dimension of each result in turn, "" where it needs none.
    """

    condition: Expr | None = None
    dynamic_dims: tuple[str, ...] = ()


def if_types(attrs: IfAttrs, ins: Sequence[Any], regions: Sequence[Graph]) -> tuple[Type, ...]:
    """The types of an `if`: those of both branches, joined."""
    _check_if(attrs, ins, regions)
    names = chain(attrs.dynamic_dims, repeat(""))
    return tuple(
        TensorType(a.dtype, tuple(_joined(attrs, p, next(names)) for p in _pairs(a, b)))
        for a, b in _results(regions)
    )


def branch_dims(attrs: IfAttrs, regions: Sequence[Graph]) -> dict[str, tuple[Expr, Expr]]:
    """The data-dependent dimensions by name, as either branch has them."""
    named = zip(_sizes(regions), attrs.dynamic_dims, strict=False)
    return {name: pair for pair, name in named if name}


def dynamic_dim_names(regions: Sequence[Graph], fresh: Callable[[], str]) -> tuple[str, ...]:
    """Names for the sizes in which the branches differ, the same for the same difference."""
    names: dict[tuple[Expr, Expr], str] = {}
    found = []
    for a, b in _sizes(regions):
        if a is not b and (a, b) not in names:
            names[a, b] = fresh()
        found.append(names.get((a, b), ""))
    return tuple(found) if names else ()


def _joined(attrs: IfAttrs, pair: tuple[Expr, Expr], name: str) -> Expr:
    if name:
        return Var(name)
    a, b = pair
    if a is b:
        return a
    if attrs.condition is None:
        what = f"its branches give sizes {a} and {b}"
        raise fail("if", what, "name the result's size in `dynamic_dims`")
    return simplify(select(attrs.condition, a, b))


def _sizes(regions: Sequence[Graph]) -> list[tuple[Expr, Expr]]:
    """The dimensions of all results, as either branch has them."""
    return [pair for a, b in _results(regions) for pair in _pairs(a, b)]


def _pairs(a: TensorType, b: TensorType) -> list[tuple[Expr, Expr]]:
    return list(zip(a.shape, b.shape, strict=True))


def _results(regions: Sequence[Graph]) -> list[tuple[TensorType, TensorType]]:
    then, other = regions
    pairs = zip(then.outputs, other.outputs, strict=True)
    return [(then.tensor_type(a), other.tensor_type(b)) for a, b in pairs]


def _check_if(attrs: IfAttrs, ins: Sequence[Any], regions: Sequence[Graph]) -> None:
    if len(regions) != 2:
        raise fail("if", f"it has {len(regions)} nested graphs", "give one for each branch")
    condition = ins[0] if ins else None
    if (condition is None) is (attrs.condition is None):
        raise fail("if", "it needs one condition", "give an operand, or the attribute `condition`")
    if condition is not None and (condition.dtype != BOOL or as_int(condition.elements) != 1):
        raise fail("if", f"its condition is {condition}", "use one truth value")
    for region in regions:
        if len(region.inputs) != len(ins) - 1:
            raise fail("if", f"graph {region.name} takes {len(region.inputs)} of {len(ins) - 1}")
    then, other = regions
    if len(then.outputs) != len(other.outputs) or not then.outputs:
        counts = f"{len(then.outputs)} and {len(other.outputs)} results"
        raise fail("if", f"its branches give {counts}", "let both give as many, at least one")
    for a, b in _results(regions):
        if a.rank != b.rank or a.dtype != b.dtype:
            raise fail("if", f"its branches give {a} and {b}", "let both give one rank and type")


def _needs_regions(attrs: Attrs, ins: Sequence[Any]) -> NoReturn:
    raise fail("if", "it has no nested graphs", "give one for each branch")


def is_control(n: Node) -> bool:
    """Whether a node's nested graphs are control flow, and not the group that a kernel computes."""
    return bool(n.regions) and n.op != "fused"


OPS = (
    Op(
        "if",
        _needs_regions,
        CONTROL,
        IfAttrs,
        region_types=if_types,
        doc="The results of one of two graphs, chosen when the model runs.",
    ),
)
