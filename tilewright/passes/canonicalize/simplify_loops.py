"""Simplify loops: invariant carried values, constants inside the body, loops of 0 or 1 steps.

    %h, %k = loop(_, %a, %b) {trip_count=N, carried=2}   →   %h = loop(_, %a, %b) {carried=1}
      {... return %next, %k}                                  and %b stands for %k

A loop-invariant carried value becomes an operand that is not carried. Constant operands are copied
into the nested graph, so that they can be folded there. A loop of one step is replaced by its body,
a loop of none by its initial values.
"""

from __future__ import annotations

from dataclasses import replace

from tilewright.arith.expr import as_int, const
from tilewright.ir.graph.nodes import Graph, Node
from tilewright.ir.types import TensorType
from tilewright.ops.control.loop import LoopAttrs
from tilewright.ops.tensor.creation import FullAttrs
from tilewright.ops.tensor.manipulation import ReshapeAttrs
from tilewright.passes.context import PassContext
from tilewright.passes.regions import inline_region, is_read, with_inputs, with_sizes
from tilewright.passes.rewriter import Rewriter, rewrite_until_stable


def simplify_loops(graph: Graph, context: PassContext) -> Graph:
    """Let loops carry only what changes, and write out those of one step or none."""
    return rewrite_until_stable(graph, _rule, of=("loop",))


def _rule(g: Rewriter, n: Node) -> tuple[str, ...] | None:
    if not isinstance(n.attrs, LoopAttrs):
        return None
    count = as_int(n.attrs.trip_count)
    if count is not None and count <= 0 and not n.attrs.trip_count_dim:
        return _no_step(g, n, n.attrs)
    if count == 1 and not n.inputs[0] and not n.attrs.trip_count_dim:
        return _one_step(g, n, n.attrs)
    return _unchanged(g, n, n.attrs) or _captures(g, n, n.attrs)


def _no_step(g: Rewriter, n: Node, attrs: LoopAttrs) -> tuple[str, ...]:
    stacks = (t for t in n.types[attrs.carried :] if isinstance(t, TensorType))
    empty = (g.add("full", attrs=FullAttrs(t.shape, 0, t.dtype)) for t in stacks)
    return (*n.inputs[1 : 1 + attrs.carried], *empty)


def _one_step(g: Rewriter, n: Node, attrs: LoopAttrs) -> tuple[str, ...]:
    body = with_sizes(n.regions[0], {attrs.induction_var: const(0)})
    results = inline_region(g, body, n.inputs[1:])[int(attrs.conditional) :]
    types = (t for t in n.types[attrs.carried :] if isinstance(t, TensorType))
    rows = zip(results[attrs.carried :], types, strict=True)
    stacks = (g.add("reshape", row, attrs=ReshapeAttrs(t.shape)) for row, t in rows)
    return (*results[: attrs.carried], *stacks)


def _unchanged(g: Rewriter, n: Node, attrs: LoopAttrs) -> tuple[str, ...] | None:
    """The loop without carrying a value that every step gives back as it is."""
    (body,), first = n.regions, int(attrs.conditional)
    results = body.outputs[first : first + attrs.carried]
    same = [k for k, value in enumerate(results) if value == body.inputs[k].name]
    if not same or len(body.outputs) == first + len(same):
        return None
    changed = [k for k in range(attrs.carried) if k not in same]
    order = [*changed, *same, *range(attrs.carried, len(body.inputs))]
    kept = [*range(first), *(first + k for k in changed)]
    kept += range(first + attrs.carried, len(body.outputs))
    region = replace(
        body,
        inputs=tuple(body.inputs[k] for k in order),
        outputs=tuple(body.outputs[k] for k in kept),
    )
    fewer = replace(attrs, carried=len(changed))
    names = [n.outputs[k] for k in (*changed, *range(attrs.carried, len(n.outputs)))]
    inputs = [n.inputs[0], *(n.inputs[1 + k] for k in order)]
    found = dict(
        zip(names, g.add_control("loop", inputs, [region], fewer, names, n.loc), strict=True)
    )
    given = {n.outputs[k]: n.inputs[1 + k] for k in same}
    return tuple((found | given)[name] for name in n.outputs)


def _captures(g: Rewriter, n: Node, attrs: LoopAttrs) -> tuple[str, ...] | None:
    """The loop without operands from outside that are constants, or that are not read."""
    (body,), given = n.regions, n.inputs[1:]
    kept = list(range(attrs.carried))
    for position in range(attrs.carried, len(given)):
        read = is_read(body, body.inputs[position].name)
        if read and g.constant_data(given[position]) is None:
            kept.append(position)
    if len(kept) == len(given):
        return None
    region = with_inputs(g, body, given, kept)
    inputs = [n.inputs[0], *(given[i] for i in kept)]
    return g.add_control("loop", inputs, [region], attrs, n.outputs, n.loc)
