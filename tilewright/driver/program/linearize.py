"""A fused graph → the steps of a run: kernel calls, checks, conditionals and loops.

No kernel is made here. The values of branches and loop bodies get names of their own, so that all
steps share one table of values; see `steps` for where values lie.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tilewright.arith.expr import Expr, const, maximum
from tilewright.arith.simplify import prove, simplify
from tilewright.arith.symbolic_bounds import most
from tilewright.arith.walk import free_vars, substitute
from tilewright.core.errors import UnsupportedError
from tilewright.driver.program.host_predicates import host_scalar_inputs
from tilewright.driver.program.steps import (
    BindDimStep,
    CarriedValue,
    IfStep,
    Item,
    KernelStep,
    StepSequence,
    WhileStep,
)
from tilewright.ir.graph.nodes import Graph, Node
from tilewright.ir.types import TensorType, Type
from tilewright.lower.lower_kernel import StridedParams
from tilewright.ops.control.bind_dim import BindDimAttrs
from tilewright.ops.control.conditional import IfAttrs, branch_dims
from tilewright.ops.control.loop import LoopAttrs
from tilewright.ops.registry import get_op
from tilewright.ops.shape.data_dependent import checks_by_node
from tilewright.ops.tensor.subviews import Subview, subviews

# Where subviews must begin for wide accesses, in bytes.
BOUNDARY = 16


def linearize(graph: Graph, host_predicates: bool = False) -> StepSequence:
    """The steps of a graph; with `host_predicates`, the host computes conditions where it can."""
    program = StepSequence(types=dict(graph.types), constants=dict(graph.constant_by_name))
    program.host_inputs = host_scalar_inputs(graph) if host_predicates else {}
    names = {name: name for name in graph.types}
    _place_views(program, graph, names)
    program.items = _items(program, graph, names)
    return program


def _place_views(program: StepSequence, graph: Graph, names: dict[str, str]) -> None:
    """Note where the views of a graph lie, before any step is made of it.

    Whether a kernel's values are strided or aligned follows from where they are placed: by the
    concatenations behind it, as a branch's result, or as a row of a loop's result.
    """
    for n in graph.nodes:
        here = _renamed(n, names)
        for i in subviews(here, program.types.__getitem__) if _is_view(n) else ():
            root = program.base_buffer(i.value)  # what is joined may be a view of what is computed
            program.subviews[root] = replace(i, value=root)
        if isinstance(n.attrs, BindDimAttrs):
            program.subviews[here.name] = Subview(here.name, here.inputs[0], here.type.shape)
        program.producers.update((name, here) for name in here.outputs)


def _items(program: StepSequence, graph: Graph, names: dict[str, str]) -> tuple[Item, ...]:
    """The steps of a graph, whose values have these names in the whole and are placed."""
    checks = checks_by_node(graph)
    items: list[Item] = [*next(checks)]
    renamed = [(n, _renamed(n, names)) for n in graph.nodes]
    idle = _computed_on_host(program, graph, names) if program.host_inputs else set()
    for n, here in renamed:
        if isinstance(n.attrs, IfAttrs):
            items.append(_if_step(program, here, n.attrs))
        elif isinstance(n.attrs, BindDimAttrs):
            items.append(_bind_dim_step(program, here, n.attrs))
        elif isinstance(n.attrs, LoopAttrs):
            items.append(_while_step(program, here, n.attrs))
        elif not _is_view(n) and n.name not in idle:
            program.steps.append(_kernel_step(program, graph, n, here))
            items.append(program.steps[-1])
        items += next(checks)
    return tuple(items)


def _computed_on_host(program: StepSequence, graph: Graph, names: Mapping[str, str]) -> set[str]:
    """Nodes that only compute conditions which the host computes itself."""
    decide, others = set[str](), set(graph.outputs)
    for n in graph.nodes:
        first = 1 if isinstance(n.attrs, IfAttrs) else 0
        decide.update(n.inputs[:first])
        others.update(n.inputs[first:])
    return {
        n.name
        for n in graph.nodes
        if decide.issuperset(n.outputs)
        and others.isdisjoint(n.outputs)
        and all(program.host_predicate(names[o]) is not None for o in n.outputs)
    }


def _is_view(n: Node) -> bool:
    return n.op != "fused" and get_op(n.op).kind == "view"


def _kernel_step(program: StepSequence, graph: Graph, n: Node, here: Node) -> KernelStep:
    """The call of the kernel of `n`, whose values have their names in the whole in `here`."""
    given = [name for name in n.inputs if name]  # absent inputs are no parameters
    return KernelStep(
        here,
        tuple(graph.types[name] if name else None for name in n.inputs),
        frozenset(i for i, name in enumerate(given) if name in graph.constant_by_name),
        _strided_params(program, here),
        _is_aligned(program, here),
    )


def _strided_params(program: StepSequence, n: Node) -> StridedParams:
    """The parameters of a node's kernel that are strided views."""
    values = (*(name for name in n.inputs if name), *n.outputs)
    parents = ((i, program.strided_view(v).parent_shape) for i, v in enumerate(values))
    return tuple((i, parent) for i, parent in parents if parent is not None)


def _is_aligned(program: StepSequence, n: Node) -> bool:
    """Whether all values of a node are aligned in their base buffers."""
    return all(
        prove(
            (program.strided_view(name).offset * program.tensor(name).dtype.bytes % BOUNDARY).eq(0)
        )
        for name in (*n.inputs, *n.outputs)
        if name in program.subviews
    )


def _renamed(n: Node, names: dict[str, str]) -> Node:
    inputs = tuple(names[i] if i else "" for i in n.inputs)
    return n.rewired(inputs, tuple(names[o] for o in n.outputs))


def _bind_dim_step(program: StepSequence, n: Node, attrs: BindDimAttrs) -> BindDimStep:
    value = n.inputs[0]
    program.use_in_control(value)
    program.dynamic_dims[attrs.name] = (const(0), attrs.bound)
    return BindDimStep(value, attrs.name, attrs.bound, n.loc)


def _if_step(program: StepSequence, n: Node, attrs: IfAttrs) -> IfStep:
    condition: str | Expr = n.inputs[0] if attrs.condition is None else attrs.condition
    if isinstance(condition, str):
        predicate = program.host_predicate(condition)
        if predicate is not None:
            condition = predicate
            program.host_scalars |= free_vars(predicate)
    if isinstance(condition, str):
        program.use_in_control(condition)
    lists = []
    for region, word in zip(n.regions, ("then", "else"), strict=True):
        names = _names(program, n, region, word, n.inputs[1:])
        _place_views(program, region, names)
        for result, output in zip(region.outputs, n.outputs, strict=True):
            root = program.base_buffer(names[result])
            program.subviews[root] = Subview(root, output, program.shape(root))
        lists.append(_items(program, region, names))
    dims = branch_dims(attrs, n.regions)
    program.dynamic_dims.update(dims)
    return IfStep(condition, (lists[0], lists[1]), dims)


def _while_step(program: StepSequence, n: Node, attrs: LoopAttrs) -> WhileStep:
    """A loop: what it reads, carries and gives is alive as long as there are steps."""
    (body,), start = n.regions, len(program.steps)
    begin, *operands = n.inputs
    carries = range(attrs.carried)
    inner = [_define(program, f"{n.name}.{v.name}", v.type) for v in body.inputs[: attrs.carried]]
    names = _names(program, n, body, "step", (*inner, *operands[attrs.carried :]))
    program.induction_vars[attrs.induction_var] = (const(0), attrs.trip_count)
    _place_views(program, body, names)
    results = [names[o] for o in body.outputs]
    going = results.pop(0) if attrs.conditional else ""
    roots = [program.base_buffer(value) for value in results]
    _place_rows(program, n, attrs, roots)
    items = _items(program, body, names)
    end = len(program.steps)
    for value in filter(None, n.inputs):
        program.use_in_control(value)
    spares = [_define(program, f"{n.outputs[k]}.spare", n.types[k]) for k in carries]
    program.live_across_loop.update((value, (start, end)) for value in (*n.outputs, *spares))
    if going:
        program.last_control_use[going] = end
    for value in (*inner, *roots[: attrs.carried]):
        program.carried[value] = len(program.carried)
    if attrs.trip_count_dim:
        program.dynamic_dims[attrs.trip_count_dim] = (const(0), attrs.trip_count)
    carried = tuple(
        CarriedValue(operands[k], inner[k], roots[k], n.outputs[k], spares[k]) for k in carries
    )
    return WhileStep(attrs, items, carried, begin, going)


def _place_rows(program: StepSequence, n: Node, attrs: LoopAttrs, roots: Sequence[str]) -> None:
    """Let what a step computes be written where its row of a result is."""
    rows = zip(roots[attrs.carried :], n.outputs[attrs.carried :], strict=True)
    for number, (root, output) in enumerate(rows):
        _, *shape = program.shape(output)
        starts = (attrs.row_index(number), *(const(0) for _ in shape))
        program.subviews[root] = Subview(root, output, (const(1), *shape), starts)


def _names(
    program: StepSequence, n: Node, region: Graph, word: str, given: Sequence[str]
) -> dict[str, str]:
    """The names in the whole of a nested graph's values, of which some are given."""
    pairs = zip(region.inputs, given, strict=True)
    names = {v.name: _seen_as(program, name, v.type) for v, name in pairs}
    for name, t in region.types.items():
        if name not in names:
            names[name] = _define(program, f"{n.name}.{word}.{name}", t)
    program.constants.update((names[c.name], c) for c in region.constants)
    return names


def _seen_as(program: StepSequence, name: str, type: Type) -> str:
    """A value under the type that a nested graph has for it: its sizes may be spelt otherwise."""
    if not name or program.types[name] == type or not isinstance(type, TensorType):
        return name
    if program.strided_view(name).parent_shape is not None:
        return name
    view = _define(program, f"{name}.seen", type)
    program.subviews[view] = Subview(view, name, type.shape)
    return view


def _define(program: StepSequence, name: str, type: Type) -> str:
    """A value of its own, called like this or similarly."""
    while name in program.types:
        name += "_"
    program.types[name] = type
    return name


def limit(e: Expr, bounds: Mapping[str, tuple[Expr, Expr]]) -> Expr:
    """The most that a size can be while dimensions with these bounds are not known.

    Each of them is one of two values, or where the first is 0 anything up to the second.
    """
    for name in sorted(free_vars(e) & bounds.keys()):
        first, last = bounds[name]
        if first is const(0):
            found = most(e, {name: last})
            if found is None:
                raise _unlimited(e)
            return limit(found, bounds)
        either = [substitute(e, {name: value}) for value in (first, last)]
        return simplify(maximum(limit(either[0], bounds), limit(either[1], bounds)))
    return e


def _unlimited(e: Expr) -> UnsupportedError:
    return UnsupportedError(
        "driver.unlimited",
        f"how large the size {e} can become is not known before the model runs",
        help="use sizes that grow with what the model counts, or that are constant",
    )
