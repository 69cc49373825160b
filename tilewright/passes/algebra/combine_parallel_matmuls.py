"""Combine parallel matmuls (GPU): products of one value with weights of one shape become one.

    %1 = matmul(%x, %w1)                         %0 = matmul(%x, %w)         w: [2, k, n]
    %2 = matmul(%x, %w2)                →        %1 = slice(%0) {0:1, ...}
                                                 %2 = slice(%0) {1:2, ...}

Projections to queries, keys and values are such products. Independent launches run concurrently
anyway; the combined one has larger tiles, and reads or transposes its left operand once. The slices
are contiguous, so that `eliminate_concat` makes them views. Constant biases are stacked as well.

The products depend on one value and on constants, not on each other, so that all can be computed
where the first one was.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tilewright.arith.expr import Expr, as_int, const, product
from tilewright.arith.simplify import simplify
from tilewright.core.dtypes import BF16, F16, F32
from tilewright.ir.graph.nodes import Graph, Node
from tilewright.ops.elementwise.define import is_pointwise
from tilewright.ops.registry import get_op
from tilewright.ops.tensor.manipulation import ReshapeAttrs, TransposeAttrs
from tilewright.ops.tensor.slicing import SliceAttrs
from tilewright.passes.context import PassContext
from tilewright.passes.rewriter import Rewriter, rewrite_graph
from tilewright.target.calibration.sm_90a import PARALLEL_MATMULS
from tilewright.target.gpu import GpuTarget

# All results of a stack are stored before the first one is read.
MAX_PRODUCTS = 4
# Columns that weights need no room behind: see `schedule/builtin/gpu/weight_layout.py`.
WHOLE_COLUMNS = 64


def combine_parallel_matmuls(graph: Graph, context: PassContext) -> Graph:
    """Compute products of one value with constant weights of one shape together."""
    target = context.target
    if not isinstance(target, GpuTarget):
        return graph
    stacks = [s for s in _stacks(graph) if _is_profitable(graph, s, target)]
    if not stacks:
        return graph
    return rewrite_graph(graph, _Stacker(stacks).replaced)


@dataclass(frozen=True)
class _Product:
    """A product with weights, and the constant that is added to it, if there is one.

    `result` is the value that others read: of the product or of the sum.
    """

    node: Node
    weights: np.ndarray
    bias: np.ndarray | None
    result: str


def _stacks(graph: Graph) -> Iterator[tuple[_Product, ...]]:
    """The products that could be computed together, in order."""
    alike: dict[object, list[_Product]] = {}
    for n in graph.nodes:
        found = _product(graph, n) if n.op == "matmul" else None
        if found is not None:
            key = n.inputs[0], found.weights.shape, n.type
            alike.setdefault(key, []).append(found)
    for products in alike.values():
        for first in range(0, len(products) - 1, MAX_PRODUCTS):
            yield tuple(products[first : first + MAX_PRODUCTS])


def _product(graph: Graph, n: Node) -> _Product | None:
    """A product of something with weights; `None` if a node is none, or is given back."""
    left, right = n.inputs
    weights = graph.constant_by_name.get(right)
    plain = weights is not None and weights.data.ndim == 2 and n.type.dtype in (BF16, F16, F32)
    if weights is None or not plain or left in graph.constant_by_name:
        return None
    sums = _added(graph, n)
    result, bias = sums if sums is not None else (n.name, None)
    return None if _is_given_back(graph, result) else _Product(n, weights.data, bias, result)


def _is_given_back(graph: Graph, value: str) -> bool:
    """Whether a value's bytes are a result of the graph, which has a place of its own."""
    views = (r for r in graph.consumers.get(value, ()) if get_op(r.op).kind == "view")
    return value in graph.output_set or any(_is_given_back(graph, v.name) for v in views)


def _added(graph: Graph, n: Node) -> tuple[str, np.ndarray] | None:
    """The sum of a product and a constant for each column, which is all that reads it."""
    readers = graph.consumers.get(n.name, ())
    if len(readers) != 1 or readers[0].op != "add" or n.name in graph.output_set:
        return None
    (reader,) = readers
    others = [graph.constant_by_name.get(i) for i in reader.inputs if i != n.name]
    bias = others[0] if others else None  # none where a product is added to itself
    if bias is None or reader.type != n.type:
        return None
    one_for_each = bias.data.size == 1 or bias.data.shape[-1:] == (bias.data.size,)
    return (reader.name, bias.data) if one_for_each else None


def _is_profitable(graph: Graph, products: tuple[_Product, ...], target: GpuTarget) -> bool:
    """Whether products take less time together than side by side, by what was measured."""
    columns, dtype = products[0].weights.shape[1], products[0].node.type.dtype
    rows = as_int(_rows(products[0].node))
    lost = sum(_has_epilogue(graph, p.result) for p in products)
    if rows is None or columns % WHOLE_COLUMNS or lost >= len(products) - 1:
        return False
    filled = (
        -(-rows // PARALLEL_MATMULS.tile) * -(-columns // PARALLEL_MATMULS.tile) / target.sm_count
    )
    if any(s.operands == str(dtype) for s in target.mma_shapes):
        return rows >= PARALLEL_MATMULS.min_rows and filled < 1
    return bool(
        filled < PARALLEL_MATMULS.max_waves
        and filled * len(products) >= PARALLEL_MATMULS.min_filled
    )


def _has_epilogue(graph: Graph, value: str) -> bool:
    """Whether the kernel of a product computes what is made of it; of a part, another has to."""
    readers = graph.consumers.get(value, ())
    return len(readers) == 1 and (
        is_pointwise(get_op(readers[0].op)) or isinstance(readers[0].attrs, TransposeAttrs)
    )


def _rows(n: Node) -> Expr:
    return simplify(product(n.type.shape[:-1]))


class _Stacker:
    """Puts parts of a stack in the place of products; the stack, before the first of them."""

    def __init__(self, stacks: list[tuple[_Product, ...]]) -> None:
        self.places = {p.result: (s, i) for s in stacks for i, p in enumerate(s)}
        # The stacks so far, by the result that is their first part.
        self.made: dict[str, str] = {}

    def replaced(self, g: Rewriter, n: Node) -> str | None:
        """The part that a product is, `None` if it is in no stack."""
        if n.name not in self.places:
            return None
        products, number = self.places[n.name]
        first = products[0].result
        if first not in self.made:
            self.made[first] = _stacked(g, n, products)
        stack = self.made[first]
        _, rows, columns = g.type(stack).shape
        attrs = SliceAttrs(
            (const(number), const(0), const(0)), (const(number + 1), rows, columns), (1, 1, 1)
        )
        part = g.add("slice", stack, attrs=attrs)
        return g.add("reshape", part, attrs=ReshapeAttrs(n.type.shape))


def _stacked(g: Rewriter, n: Node, products: tuple[_Product, ...]) -> str:
    """All products as one; `n` is the first of them, or the sum that it is part of."""
    made = n if n.op == "matmul" else g.producer(products[0].node.name)
    assert made is not None
    depth, columns = products[0].weights.shape
    left = g.add("reshape", made.inputs[0], attrs=ReshapeAttrs((_rows(n), const(depth))))
    stack = g.add("matmul", left, g.constant(np.stack([p.weights for p in products])))
    if all(p.bias is None for p in products):
        return stack
    row = np.zeros((1, columns), products[0].weights.dtype)
    biases = [row if p.bias is None else row + p.bias.reshape(1, -1) for p in products]
    return g.add("add", stack, g.constant(np.stack(biases)))
