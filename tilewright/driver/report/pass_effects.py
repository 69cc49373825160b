"""What each graph pass does to a model: nodes, kernels, bytes moved, estimated time.

After every pass that changes the graph, its operators are grouped on the side, as if no further
pass were to come. A kernel moves each of its operands and results once; it takes at least the time
that the roofline allows. Symbolic sizes are taken as `TYPICAL_SIZE`.

    pass            nodes  kernels  MB moved  estimated ms
    import             41       23      12.1         0.912
    fuse_attention     35       20       9.8         0.804
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from tilewright.arith.evaluate import evaluate
from tilewright.arith.expr import Expr
from tilewright.arith.walk import free_vars
from tilewright.driver.report.gpu_roofline import gpu_roofline
from tilewright.ir.graph.nodes import Graph, Node
from tilewright.ir.types import TYPICAL_SIZE, TensorType
from tilewright.lower.kernel_cost import group_flops
from tilewright.ops.registry import get_op
from tilewright.passes.canonicalize.dce import dce
from tilewright.passes.context import Pass, PassContext
from tilewright.passes.fuse import fuse
from tilewright.passes.manager import apply_pass, pass_name, run_passes
from tilewright.runtime.roofline.roofline import KernelWork, Roofline
from tilewright.target.gpu import GpuTarget
from tilewright.target.target import Target

IMPORT = "import"
"""The name of the first row: the model before any pass."""
# Types whose products have instructions of their own.
_NARROW = ("i8", "u8", "bf16", "f16")


@dataclass(frozen=True)
class PassEffect:
    """The model after one run of a pass; `estimated_s` is `None` without the machine's roofline."""

    name: str
    nodes: int
    kernels: int
    bytes: int
    estimated_s: float | None


def pass_effects(
    graph: Graph, passes: Sequence[Pass], context: PassContext, roofline: Roofline | None
) -> list[PassEffect]:
    """The model as it is imported, and after each pass that changes it."""
    effects = [_effect(IMPORT, graph, context, roofline)]
    for p in passes:
        after = run_passes(graph, (p,), context)
        if after is not graph:
            effects.append(_effect(pass_name(p), after, context, roofline))
        graph = after
    return effects


def roofline_of(target: Target, native: Roofline | None) -> Roofline | None:
    """The roofline of a GPU by its data sheet, that of this machine where it was measured."""
    return gpu_roofline(target) if isinstance(target, GpuTarget) else native


def _effect(name: str, graph: Graph, context: PassContext, roofline: Roofline | None) -> PassEffect:
    works = [_work(g, n) for g, n in _kernels(_grouped(graph, context))]
    footprint = float(sum(c.data.nbytes for c in graph.constants))
    seconds = None if roofline is None else sum(roofline.bound(w, footprint).seconds for w in works)
    nodes = sum(1 for _ in _model_nodes(graph))
    return PassEffect(name, nodes, len(works), int(sum(w.bytes for w in works)), seconds)


def _grouped(graph: Graph, context: PassContext) -> Graph:
    """The graph with its operators in groups; what nobody reads is no kernel."""
    if any(n.op == "fused" for n in graph.walk()):
        return graph
    aside = PassContext(context.target, context.precision)
    return apply_pass(fuse, apply_pass(dce, graph, aside), aside)


def _model_nodes(graph: Graph) -> Iterator[Node]:
    """The nodes of a graph and of its control flow; a group counts as one."""
    for n in graph.nodes:
        yield n
        if n.op != "fused":
            for region in n.regions:
                yield from _model_nodes(region)


def _kernels(graph: Graph) -> Iterator[tuple[Graph, Node]]:
    """The nodes that kernels compute, each with the graph that it is in; views need none."""
    for n in graph.nodes:
        if n.regions and n.op != "fused":
            for region in n.regions:
                yield from _kernels(region)
        elif n.op == "fused" or get_op(n.op).kind != "view":
            yield graph, n


def _work(graph: Graph, n: Node) -> KernelWork:
    read = [name for name in dict.fromkeys(n.inputs) if name]
    sizes = {name: _bytes(graph.types[name]) for name in (*read, *n.outputs)}
    weights = sum(sizes[name] for name in read if name in graph.constant_by_name)
    dtypes = {t.dtype.name for t in map(graph.types.get, read) if isinstance(t, TensorType)}
    element = next((name for name in _NARROW if name in dtypes), "f32")
    return KernelWork(_typical(_flops(graph, n)), sum(sizes.values()), weights, element)


def _flops(graph: Graph, n: Node) -> Expr:
    if n.op == "fused":
        return group_flops(n.regions[0])
    ins = [graph.types[i] if i else None for i in n.inputs]
    return get_op(n.op).cost(n.attrs, ins, n.types)


def _bytes(t: object) -> int:
    if not isinstance(t, TensorType):
        return 0
    return prod(map(_typical, t.shape)) * t.dtype.bytes


def _typical(value: Expr) -> int:
    symbols: Mapping[str, int] = dict.fromkeys(free_vars(value), TYPICAL_SIZE)
    return int(evaluate(value, symbols))
