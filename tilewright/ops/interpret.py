"""The reference interpreter of graphs: slow and obvious, for tests and for checking passes.

    run_graph(graph, {"x": np.ones((3, 64), np.float32)})    {"y": array(...)}

Each operator is interpreted through what its row says it means: tensor expressions, a loop
function, or simpler operators.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from tilewright.arith.evaluate import evaluate
from tilewright.arith.expr import Expr, Var, const
from tilewright.core.dtypes import from_numpy
from tilewright.core.errors import Error, ExecutionError
from tilewright.ir.graph.nodes import Check, Graph, Node
from tilewright.ir.loop.interp.run import run_func
from tilewright.ir.loop.walk import map_exprs
from tilewright.ir.tensor.build import Builder
from tilewright.ir.tensor.interp import Sums, run_program
from tilewright.ir.tensor.nodes import Program
from tilewright.ir.types import TensorType, Type
from tilewright.ops.control.bind_dim import BindDimAttrs
from tilewright.ops.control.conditional import IfAttrs
from tilewright.ops.control.loop import LoopAttrs
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.ops.op import Op
from tilewright.ops.registry import get_op
from tilewright.ops.shape.data_dependent import checks_by_node

Sizes = Mapping[str, int]
Arrays = Sequence[np.ndarray | None]
# How one node is evaluated: from the node, its operands, the sizes and the types of the operands.
Step = Callable[[Node, Arrays, Sizes, Sequence[Type | None]], list[np.ndarray]]
# Puts another expression in the place of one that an operator computes.
Edit = Callable[[Expr], Expr]


def run_graph(
    graph: Graph, inputs: Mapping[str, np.ndarray], sizes: Sizes | None = None
) -> dict[str, np.ndarray]:
    """The outputs by name; `sizes` gives symbolic sizes that the inputs' shapes do not."""
    return dict(zip(graph.outputs, run_outputs(graph, inputs, sizes), strict=True))


def run_outputs(
    graph: Graph,
    inputs: Mapping[str, np.ndarray],
    sizes: Sizes | None = None,
    step: Step | None = None,
) -> list[np.ndarray]:
    """The outputs in order; a check that does not hold is an error.

    `step` evaluates each node of the graph itself, instead of `evaluate_node`.
    """
    sizes = bind_sizes(graph, inputs, sizes or {})
    checks = checks_by_node(graph)
    _require(next(checks), sizes)
    values: dict[str, np.ndarray] = {c.name: c.data for c in graph.constants}
    values.update((v.name, np.asarray(inputs[v.name])) for v in graph.inputs)
    for node in graph.nodes:
        arrays = [values[name] if name else None for name in node.inputs]
        types = [graph.types[name] if name else None for name in node.inputs]
        try:
            results = (step or evaluate_node)(node, arrays, sizes, types)
        except Error as error:
            raise error.at(node.loc) from error.__cause__
        values.update(zip(node.outputs, results, strict=True))
        bind_dynamic_dims(node, results, sizes)
        _require(next(checks), sizes)
    return [values[name] for name in graph.outputs]


def _require(checks: Sequence[Check], sizes: Sizes) -> None:
    for check in checks:
        if not evaluate(check.condition, sizes):
            raise ExecutionError("run.check", check.message, loc=check.loc)


def bind_dynamic_dims(node: Node, results: Sequence[np.ndarray], sizes: dict[str, int]) -> None:
    """Record the data-dependent dimensions that a node has defined."""
    if isinstance(node.attrs, BindDimAttrs):
        found = int(results[0].reshape(()))
        if not 0 <= found <= evaluate(node.attrs.bound, sizes):
            message = f"size {node.attrs.name} is {found}, at most {node.attrs.bound} was expected"
            raise ExecutionError("run.check", message, loc=node.loc)
        sizes[node.attrs.name] = found
    if isinstance(node.attrs, IfAttrs):
        dims = (d for x in results for d in x.shape)
        sizes.update((n, d) for n, d in zip(node.attrs.dynamic_dims, dims, strict=False) if n)
    if isinstance(node.attrs, LoopAttrs) and node.attrs.trip_count_dim:
        sizes[node.attrs.trip_count_dim] = len(results[-1])


def evaluate_node(
    node: Node,
    inputs: Arrays,
    sizes: Sizes,
    types: Sequence[Type | None] | None = None,
    step: Step | None = None,
    edit: Edit | None = None,
    sums: Sums = "",
) -> list[np.ndarray]:
    """The outputs of one node; `types` are those of its inputs, by default what the arrays have.

    `step` evaluates the nodes of its nested graphs, or of what it decomposes into; `edit` changes
    what it computes, `sums` how tensor expressions add floats.
    """
    if node.regions:
        return _REGIONS[node.op](node, inputs, sizes, step)
    row = get_op(node.op)
    if types is None:
        types = [None if x is None else _type_of(x) for x in inputs]
    if row.te is not None:
        return _run_te(row, node, inputs, sizes, types, edit, sums)
    if row.loops is not None:
        return _run_loops(row, node, inputs, sizes, types, edit)
    return _run_decomposed(row, node, inputs, sizes, types, step)


def _run_fused(node: Node, inputs: Arrays, sizes: Sizes, within: Step | None) -> list[np.ndarray]:
    """A group of operators means what its graph means."""
    group = node.regions[0]
    given = {v.name: x for v, x in zip(group.inputs, inputs, strict=True) if x is not None}
    return run_outputs(group, given, sizes, within)


def _run_if(node: Node, inputs: Arrays, sizes: Sizes, within: Step | None) -> list[np.ndarray]:
    """The branch that the condition chooses."""
    attrs = node.attrs
    assert isinstance(attrs, IfAttrs)
    if attrs.condition is not None:
        taken = bool(evaluate(attrs.condition, sizes))
    else:
        assert inputs[0] is not None
        taken = bool(inputs[0].reshape(()))
    branch = node.regions[0 if taken else 1]
    given = {v.name: x for v, x in zip(branch.inputs, inputs[1:], strict=True) if x is not None}
    return run_outputs(branch, given, sizes, within)


def _run_loop(node: Node, inputs: Arrays, sizes: Sizes, within: Step | None) -> list[np.ndarray]:
    """The graph, run while its conditions hold."""
    attrs, (body,) = node.attrs, node.regions
    assert isinstance(attrs, LoopAttrs)
    begin, *operands = inputs
    given = [x for x in operands if x is not None]
    going, step = begin is None or bool(begin.reshape(())), 0
    count = evaluate(attrs.trip_count, sizes)
    carried, outer = given[: attrs.carried], given[attrs.carried :]
    rows: list[list[np.ndarray]] = [[] for _ in node.outputs[attrs.carried :]]
    while going and step < count:
        named = {v.name: x for v, x in zip(body.inputs, (*carried, *outer), strict=True)}
        results = run_outputs(body, named, {**sizes, attrs.induction_var: step}, within)
        if attrs.conditional:
            going = bool(results.pop(0).reshape(()))
        carried = results[: attrs.carried]
        for row, value in zip(rows, results[attrs.carried :], strict=True):
            row.append(value)
        step += 1
    after = {**sizes, attrs.trip_count_dim: step}
    typed = zip(node.types[attrs.carried :], rows, strict=True)
    stacks = (_stacked(t, row, after) for t, row in typed)
    ordered = (x[::-1] if i in attrs.backward else x for i, x in enumerate(stacks))
    return [*carried, *ordered]


def _stacked(type: Type, rows: list[np.ndarray], sizes: Sizes) -> np.ndarray:
    assert isinstance(type, TensorType)
    shape = tuple(evaluate(d, sizes) for d in type.shape)
    return np.stack(rows) if rows else np.empty(shape, type.dtype.numpy)


# What nodes with nested graphs mean.
_REGIONS: dict[str, Callable[[Node, Arrays, Sizes, Step | None], list[np.ndarray]]] = {
    "fused": _run_fused,
    "if": _run_if,
    "loop": _run_loop,
}


def tensor_program(row: Op, node: Node, types: Sequence[Type | None]) -> Program:
    """The tensor expressions of a node; its inputs are `x0, x1, ...`, absent ones left out."""
    b = Builder(node.op)
    tensors = [
        b.input(f"x{i}", t.dtype, t.shape) if isinstance(t, TensorType) else None
        for i, t in enumerate(types)
    ]
    assert row.te is not None
    result = row.te(b, node.attrs, tensors, node.types)
    return b.program(*(result if isinstance(result, tuple) else (result,)))


def bind_sizes(graph: Graph, inputs: Mapping[str, np.ndarray], sizes: Sizes) -> dict[str, int]:
    """The symbolic sizes that the inputs' shapes give; shapes that do not fit are an error."""
    found = dict(sizes)
    for value in graph.inputs:
        if value.name not in inputs:
            raise ExecutionError("run.missing-input", f"input {value.name!r} is not given")
        shape = np.shape(inputs[value.name])
        if not isinstance(value.type, TensorType) or len(shape) != value.type.rank:
            raise _misfit(value.name, shape, value.type)
        for dim, size in zip(value.type.shape, shape, strict=True):
            if isinstance(dim, Var):
                found.setdefault(dim.name, size)
    for value in graph.inputs:
        assert isinstance(value.type, TensorType)
        shape = np.shape(inputs[value.name])
        if shape != tuple(evaluate(d, found) for d in value.type.shape):
            raise _misfit(value.name, shape, value.type)
    return found


def _misfit(name: str, shape: Sequence[int], type: Type) -> ExecutionError:
    return ExecutionError("run.shape", f"input {name!r} has shape {list(shape)}, expected {type}")


def _run_te(
    row: Op,
    node: Node,
    inputs: Arrays,
    sizes: Sizes,
    types: Sequence[Type | None],
    edit: Edit | None,
    sums: Sums,
) -> list[np.ndarray]:
    program = tensor_program(row, node, types)
    if edit is not None:
        stages = tuple(replace(s, body=edit(s.body)) for s in program.stages)
        program = replace(program, stages=stages)
    given = {f"x{i}": x for i, x in enumerate(inputs) if x is not None}
    found = run_program(program, given, sizes, sums)
    return [found[name] for name in program.outputs]


def _run_loops(
    row: Op,
    node: Node,
    inputs: Arrays,
    sizes: Sizes,
    types: Sequence[Type | None],
    edit: Edit | None,
) -> list[np.ndarray]:
    assert row.loops is not None
    func = row.loops(node.attrs, types, node.types)
    if edit is not None:
        func = replace(func, body=map_exprs(func.body, edit))
    buffers = {f"x{i}": x for i, x in enumerate(inputs) if x is not None}
    outputs: list[np.ndarray] = []
    for i, type in enumerate(node.types):
        assert isinstance(type, TensorType)
        shape = tuple(evaluate(d, sizes) for d in type.shape)
        outputs.append(np.empty(shape, type.dtype.numpy))
        buffers[f"y{i}"] = outputs[-1]
    run_func(func, buffers, sizes)
    return outputs


def _run_decomposed(
    row: Op,
    node: Node,
    inputs: Arrays,
    sizes: Sizes,
    types: Sequence[Type | None],
    step: Step | None,
) -> list[np.ndarray]:
    assert row.decompose is not None, row.name
    g = GraphBuilder(node.op, node.loc)
    names = [g.input(f"x{i}", t) if t is not None else "" for i, t in enumerate(types)]
    result = row.decompose(g, node.attrs, names)
    outputs = result if isinstance(result, tuple) else (result,)
    given = {name: x for name, x in zip(names, inputs, strict=True) if x is not None}
    return run_outputs(g.graph(*outputs), given, sizes, step)


def _type_of(x: np.ndarray) -> TensorType:

    return TensorType(from_numpy(x.dtype), tuple(const(d) for d in x.shape))
