"""Activations that products read in bf16 are stored in bf16 alone, where the precision allows it.

    y = relu(x)                          z = cast[bf16](relu(x))
    matmul_f32out(cast[bf16](y), w)  →   matmul_f32out(z, w)
    add(y, r)                            add(cast[f32](z), r)

A residual is then written once, by the kernel that computes it, in half the bytes. Sums and all
other arithmetic stay f32: only what is stored is rounded. What stays f32 beside its rounded copy:
results of the model, what is not computed by a product and its epilogue (norms, which make the
residuals of some transformers: rounding those costs more bits), and what a kernel would have to
convert again for each use, as windows do.
"""

from __future__ import annotations

from tilewright.core.dtypes import BF16, F32
from tilewright.ir.graph.nodes import Graph, Node
from tilewright.ir.types import TensorType
from tilewright.ops.elementwise.arithmetic import CastAttrs
from tilewright.ops.elementwise.define import is_pointwise
from tilewright.ops.registry import get_op
from tilewright.passes.context import PassContext
from tilewright.passes.rewriter import Rewriter, rewrite_graph
from tilewright.target.cpu import CpuTarget

PRODUCTS = ("matmul_f32out", "conv")


def bf16_activations(graph: Graph, context: PassContext) -> Graph:
    """Let all readers of an activation read the bf16 that its products read, if allowed."""
    if context.precision != "bf16" or not isinstance(context.target, CpuTarget):
        return graph
    narrow = {n.inputs[0] for n in graph.nodes if _rounds(n) and _is_shared(graph, n.inputs[0])}
    copies: dict[str, str] = {}

    def rule(g: Rewriter, n: Node) -> str | None:
        if not narrow.intersection(n.inputs):
            return None
        if _rounds(n):
            known = copies.setdefault(n.inputs[0], n.name)
            return None if known == n.name else known
        wide = {}
        for value in narrow.intersection(n.inputs):
            if value not in copies:
                copies[value] = g.add("cast", value, attrs=CastAttrs(BF16))
            # A conversion for each reader: it is computed there and not stored.
            wide[value] = g.add("cast", copies[value], attrs=CastAttrs(F32))
        return g.add(n.op, *(wide.get(v, v) for v in n.inputs), attrs=n.attrs)

    return rewrite_graph(graph, rule) if narrow else graph


def _rounds(n: Node) -> bool:
    """Whether a node rounds f32 to bf16."""
    return isinstance(n.attrs, CastAttrs) and n.attrs.to == BF16


def _is_shared(graph: Graph, value: str) -> bool:
    """Whether an activation has readers other than products, all of which can convert it."""
    type = graph.types[value]
    computed = _is_from_product(graph, value) and value not in graph.output_set
    readers = graph.consumers.get(value, ())
    others = [n for n in readers if not _rounds(n)]
    return (
        computed
        and isinstance(type, TensorType)
        and type.dtype == F32
        and bool(others)
        and all(map(_converts, others))
    )


def _is_from_product(graph: Graph, value: str) -> bool:
    """Whether a value is that of a product or of its epilogue."""
    seen, pending = {value}, [value]
    while pending:
        n = graph.producer.get(pending.pop())
        if n is not None and n.op in PRODUCTS:
            return True
        if n is not None and is_pointwise(get_op(n.op)):
            pending += {*n.inputs} - seen
            seen.update(n.inputs)
    return False


def _converts(n: Node) -> bool:
    """Whether a kernel converts each element that an operator reads just once."""
    row = get_op(n.op)
    once = is_pointwise(row) or (row.kind == "reduction" and not row.rereads)
    return once and len(n.outputs) == 1
