"""Loops: one nested graph, run step by step.

    %h: f32[8], %ys: f32[T, 8] = loop(_, %h0, %x) {induction_var="i", trip_count=T, carried=1}
      graph @body(h: f32[8], x: f32[T, 8]) {
        %xi: f32[1, 8] = slice(%x) {starts=[i, 0], stops=[i + 1, 8], steps=[1, 1], inside=true}
        ...
        return %next, %y
      }

As in an `if`, the nested graph reads its own inputs and constants only. Its inputs are the operands
behind the first: the `carried` values, then what it takes from outside. It gives the carried values
for the next step, which keep their types, then a row for each further result: the rows of all steps
are stacked, those of `backward` results from the last to the first.

`induction_var` is a dimension that is 0, 1, ... in the steps. There are at most `trip_count` steps.
They end early where the graph is `conditional`: its first result then says whether to continue. The
first operand, if there is one, says whether to begin. The number of steps is then data-dependent,
the dimension that `trip_count_dim` names.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from tilewright.arith.expr import Expr, Var, as_int, const
from tilewright.arith.simplify import simplify
from tilewright.arith.walk import free_vars
from tilewright.core.dtypes import BOOL
from tilewright.core.node import node
from tilewright.ir.graph.nodes import Attrs, Graph
from tilewright.ir.types import TensorType, Type
from tilewright.ops.control.bind_dim import BindDimAttrs
from tilewright.ops.control.conditional import CONTROL, IfAttrs
from tilewright.ops.op import Op, fail


@node
class LoopAttrs(Attrs):
    """The induction variable, the largest trip count, and what results mean."""

    induction_var: str
    trip_count: Expr
    carried: int
    conditional: bool = False
    trip_count_dim: str = ""
    backward: tuple[int, ...] = ()

    @property
    def steps(self) -> Expr:
        """How many steps there are, once the loop has run."""
        return Var(self.trip_count_dim) if self.trip_count_dim else self.trip_count

    def row_index(self, row: int) -> Expr:
        """Where the row of a step goes in the results that are stacked."""
        step = Var(self.induction_var)
        return simplify(self.trip_count - 1 - step) if row in self.backward else step


def loop_types(attrs: LoopAttrs, ins: Sequence[Any], regions: Sequence[Graph]) -> tuple[Type, ...]:
    """The types of a loop: those of the carried values, then stacks of rows."""
    if len(regions) != 1:
        raise fail("loop", f"it has {len(regions)} nested graphs", "give one")
    (body,) = regions
    _check_begin(attrs, ins, body)
    first = int(attrs.conditional)
    carried = body.outputs[first : first + attrs.carried]
    for value, result in zip(body.inputs, carried, strict=False):
        if not equal_types(value.type, body.types[result]):
            kinds = f"{value.type} becomes {body.types[result]}"
            raise fail("loop", f"carried value {value.name}: {kinds}", "let it keep its type")
    rows = [body.tensor_type(o) for o in body.outputs[first + attrs.carried :]]
    for row in rows:
        _check_row(attrs, body, row)
    stacks = tuple(TensorType(row.dtype, (attrs.steps, *row.shape)) for row in rows)
    return (*ins[1 : 1 + attrs.carried], *stacks)


def equal_types(a: Type, b: Type) -> bool:
    """Whether two types of tensors are the same, however their sizes are spelt."""
    assert isinstance(a, TensorType)
    assert isinstance(b, TensorType)
    if a.dtype != b.dtype or a.rank != b.rank:
        return False
    pairs = zip(a.shape, b.shape, strict=True)
    return all(x is y or simplify(x - y) is const(0) for x, y in pairs)


def local_sizes(body: Graph) -> set[str]:
    """The sizes that are known only inside a nested graph."""
    found: set[str] = set()
    for n in body.walk():
        if isinstance(n.attrs, BindDimAttrs):
            found.add(n.attrs.name)
        elif isinstance(n.attrs, IfAttrs):
            found |= set(n.attrs.dynamic_dims) - {""}
        elif isinstance(n.attrs, LoopAttrs):
            found |= {n.attrs.induction_var, n.attrs.trip_count_dim} - {""}
    return found


def _check_begin(attrs: LoopAttrs, ins: Sequence[Any], body: Graph) -> None:
    if not ins or len(body.inputs) != len(ins) - 1:
        given = max(len(ins) - 1, 0)
        raise fail("loop", f"graph {body.name} takes {len(body.inputs)} operands of {given}")
    begin = ins[0]
    if begin is not None and (begin.dtype != BOOL or as_int(begin.elements) != 1):
        raise fail("loop", f"its condition is {begin}", "use one truth value")
    results = int(attrs.conditional) + attrs.carried
    if attrs.carried > len(body.inputs) or len(body.outputs) < max(results, 1):
        raise fail("loop", f"graph {body.name} gives {len(body.outputs)} results")
    if attrs.conditional:
        going = body.tensor_type(body.outputs[0])
        if going.dtype != BOOL or as_int(going.elements) != 1:
            raise fail("loop", f"it goes on by {going}", "use one truth value")
    early = attrs.conditional or begin is not None
    if early and len(body.outputs) > results and not attrs.trip_count_dim:
        raise fail("loop", "how many rows it gives has no name", "name it in `trip_count_dim`")


def _check_row(attrs: LoopAttrs, body: Graph, row: TensorType) -> None:
    inside = {attrs.induction_var} | local_sizes(body)
    for d in row.shape:
        if not inside.isdisjoint(free_vars(d)):
            raise fail("loop", f"a row {row} is not the same in all steps")


def _needs_region(attrs: Attrs, ins: Sequence[Any]) -> NoReturn:
    raise fail("loop", "it has no nested graph", "give one")


OPS = (
    Op(
        "loop",
        _needs_region,
        CONTROL,
        LoopAttrs,
        region_types=loop_types,
        doc="A graph that is run again and again; it carries values and gives rows.",
    ),
)
