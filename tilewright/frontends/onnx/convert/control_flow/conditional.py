"""Control flow: If.

A condition that is known at compile time selects one branch, whose nodes replace the If. A branch
that cannot be compiled is an error only when it is taken, unless neither can be compiled.
"""

from __future__ import annotations

from functools import partial

from onnx import GraphProto

from tilewright.arith.expr import FALSE, Const, Expr, const, unary
from tilewright.arith.simplify import simplify
from tilewright.core.dtypes import BOOL
from tilewright.core.errors import Error, TypeCheckError, UnsupportedError
from tilewright.frontends.onnx.backtracking import Backtracker, first_success
from tilewright.frontends.onnx.context import Converter, OnnxContext, OnnxNode, identifier
from tilewright.frontends.onnx.regions import Captured, region_builder
from tilewright.frontends.onnx.segments.data_dependent import DataDependent, NeedsConcreteSizes
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.types import TensorType
from tilewright.ops.control.conditional import IfAttrs, dynamic_dim_names
from tilewright.ops.shape.assumptions import definition_order
from tilewright.ops.tensor.creation import FullAttrs


def if_(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """One of two nested graphs."""
    branches = n.graph_attr("then_branch"), n.graph_attr("else_branch")
    for branch, name in zip(branches, ("then_branch", "else_branch"), strict=True):
        _check_branch(n, branch, name)
    condition = _condition(c, n)
    if isinstance(condition, Const):
        return c.nested(c.inner(), branches[0 if condition.value else 1])
    captured = Captured.by(c, branches)
    regions = _regions(c, n, branches, captured)
    if [_form(regions[0], o) for o in regions[0].outputs] != [
        _form(regions[1], o) for o in regions[1].outputs
    ]:
        return _chosen(c, n, branches, regions, condition)
    attrs = IfAttrs(condition) if condition is not None else _with_dynamic_dims(c, regions)
    names = [identifier(name) if name else "if" for name in n.outputs]
    inputs = ["" if condition is not None else n.required(0), *captured.operands(c)]
    return c.g.add_control("if", inputs, regions, attrs, names, n.loc)


def _check_branch(n: OnnxNode, branch: GraphProto, name: str) -> None:
    if branch.input:
        raise n.invalid(f"{name} has inputs", "a branch takes values from the graphs around it")
    if len(branch.output) < n.n_outputs:
        raise n.invalid(f"{name} gives {len(branch.output)} results, not {n.n_outputs}")


def _condition(c: OnnxContext, n: OnnxNode) -> Expr | None:
    """The condition as an expression over sizes, `None` if it depends on data."""
    name = n.required(0)
    given = c.type(name)
    if given.dtype != BOOL:
        raise n.invalid(f"its condition is {given}", "use a tensor of one truth value")
    known = c.g.symbolic_value(name)
    if known is None or known.size != 1:
        return None
    condition: Expr = simplify(known.reshape(-1)[0])
    return condition


def _regions(
    c: OnnxContext, n: OnnxNode, branches: tuple[GraphProto, GraphProto], captured: Captured
) -> tuple[Graph, Graph]:
    """Both branches as graphs; one that cannot be compiled fails when it is taken."""
    found: list[Graph | Error] = []
    for branch in branches:
        try:
            found.append(first_success(partial(_region, c, branch, captured)))
        except (TypeCheckError, UnsupportedError) as error:
            found.append(error.at(n.loc))
    then, other = found
    if not c.whole and any(isinstance(result, DataDependent) for result in found):
        raise c.needs_value(n, 0)  # a stage that knows which branch is taken can wait within it
    for result in found:
        if isinstance(result, NeedsConcreteSizes):
            raise result  # nothing is wrong with the branch: segments know the sizes
    if isinstance(then, Error):
        if isinstance(other, Error):
            raise c.needs_value(n, 0) if isinstance(then, DataDependent) else then
        return _failing(c, captured, other, then), other
    return then, _failing(c, captured, then, other) if isinstance(other, Error) else other


def _region(
    c: OnnxContext, branch: GraphProto, captured: Captured, backtracker: Backtracker
) -> Graph:
    g = region_builder(c, branch.name)
    inner = c.inner(g, captured.define(c, g), backtracker)
    return g.graph(*c.nested(inner, branch))


def _failing(c: OnnxContext, captured: Captured, like: Graph, error: Error) -> Graph:
    """A graph with the results of another, that fails when it is entered."""
    g = region_builder(c, "failing")
    captured.define(c, g)
    g.add_check(FALSE, f"this branch of the model cannot run: {error.message}", error.loc)
    results = []
    for name in like.outputs:
        t = like.tensor_type(name)
        # A size that the other branch learns has no value here; none is needed.
        shape = tuple(const(0) if definition_order(size) else size for size in t.shape)
        results.append(g.add("full", attrs=FullAttrs(shape, 0, t.dtype)))
    return g.graph(*results)


def _form(region: Graph, name: str) -> tuple[object, int]:
    t = region.types[name]
    assert isinstance(t, TensorType)
    return t.dtype, t.rank


def _chosen(
    c: OnnxContext,
    n: OnnxNode,
    branches: tuple[GraphProto, GraphProto],
    regions: tuple[Graph, Graph],
    condition: Expr | None,
) -> tuple[str, ...]:
    """The nodes of the branch with which the rest of the model makes sense; see `backtracking`."""
    if condition is None:
        raise c.needs_value(n, 0)
    then = c.backtracker.take()
    holds = condition if then else unary("not", condition)
    message = f"If: the model was compiled for {simplify(holds)}"
    if not c.g.add_check(holds, message, n.loc):
        raise n.invalid(f"{holds} cannot be")
    return c.nested(c.inner(), branches[0 if then else 1])


def _with_dynamic_dims(c: OnnxContext, regions: tuple[Graph, Graph]) -> IfAttrs:
    return IfAttrs(dynamic_dims=dynamic_dim_names(regions, c.fresh_size))


CONVERTERS: dict[str, Converter] = {"If": if_}
