"""Small graphs of one kernel each, at any sizes, fixed or symbolic: what schedules are made for.

KERNELS["dense"](7, 13, Var("K"))       # a graph; every builder takes three dimensions
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tilewright.arith.expr import Expr, as_int, const
from tilewright.core.dtypes import F32, I64, DType
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.types import tensor
from tilewright.ops.attrs import make_attrs
from tilewright.ops.graph_builder import GraphBuilder

Dim = Expr | int
WINDOW = {"strides": (1, 1), "pads": (1, 1, 1, 1), "dilations": (1, 1)}


class _Maker:
    """A builder with fewer words: inputs, seeded weights, operators with plain attributes."""

    def __init__(self, name: str) -> None:
        self.g = GraphBuilder(name)
        self.rng = np.random.default_rng(7)

    def input(self, *shape: Dim, dtype: DType = F32) -> str:
        return self.g.input(f"x{len(self.g.inputs)}", tensor(dtype, *shape))

    def weight(self, *shape: Dim) -> str:
        sizes = [as_int(d) if isinstance(d, Expr) else d for d in shape]
        if None in sizes:  # a weight of symbolic size is an input
            return self.input(*shape)
        return self.g.constant((0.5 * self.rng.standard_normal(sizes)).astype(np.float32))

    def add(self, op: str, *inputs: str, **values: object) -> str:
        return self.g.add(op, *inputs, attrs=make_attrs(op, values) if values else None)


def matmul(m: Dim, n: Dim, k: Dim) -> Graph:
    b = _Maker("matmul")
    return b.g.graph(b.add("matmul", b.input(m, k), b.weight(k, n)))


def dense(m: Dim, n: Dim, k: Dim) -> Graph:
    b = _Maker("dense")
    y = b.add("add", b.add("matmul", b.input(m, k), b.weight(k, n)), b.weight(n))
    return b.g.graph(b.add("add", b.add("relu", y), b.input(m, n)))


def batched_matmul(m: Dim, n: Dim, k: Dim) -> Graph:
    """Both operands unknown, the second one transposed."""
    b = _Maker("batched_matmul")
    x, y = b.input(3, m, k), b.input(3, n, k)
    return b.g.graph(b.add("matmul", x, b.add("transpose", y, perm=(0, 2, 1))))


def conv(h: Dim, c: Dim, o: Dim) -> Graph:
    b = _Maker("conv")
    x, w = b.input(1, c, h, 6), b.weight(o, c, 3, 3)
    y = b.add("conv", x, w, **{**WINDOW, "strides": (2, 1)})
    return b.g.graph(b.add("relu", b.add("add", y, b.weight(o, 1, 1))))


def pointwise_conv(h: Dim, c: Dim, o: Dim) -> Graph:
    b = _Maker("pointwise_conv")
    x, w = b.input(1, c, h, 5), b.weight(o, c, 1, 1)
    return b.g.graph(b.add("conv", x, w, strides=(1, 1), pads=(0, 0, 0, 0), dilations=(1, 1)))


def depthwise(h: Dim, c: Dim, _: Dim) -> Graph:
    b = _Maker("depthwise")
    groups = as_int(c) if isinstance(c, Expr) else c
    assert groups is not None
    x, w = b.input(1, c, h, 6), b.weight(c, 1, 3, 3)
    return b.g.graph(b.add("conv", x, w, **WINDOW, groups=groups))


def max_pool(h: Dim, c: Dim, _: Dim) -> Graph:
    b = _Maker("max_pool")
    return b.g.graph(b.add("max_pool", b.input(1, c, h, 7), kernel=(3, 3), **WINDOW))


def average_pool(h: Dim, c: Dim, _: Dim) -> Graph:
    b = _Maker("average_pool")
    strided = {**WINDOW, "strides": (2, 2)}
    return b.g.graph(b.add("average_pool", b.input(2, c, h, 7), kernel=(3, 3), **strided))


def global_pool(h: Dim, c: Dim, _: Dim) -> Graph:
    b = _Maker("global_pool")
    return b.g.graph(b.add("reduce_mean", b.input(2, c, h, 7), axes=(2, 3), keepdims=True))


def softmax(m: Dim, n: Dim, _: Dim) -> Graph:
    b = _Maker("softmax")
    return b.g.graph(b.add("softmax", b.add("mul", b.input(m, n), b.weight(1)), axis=-1))


def softmax_columns(m: Dim, n: Dim, k: Dim) -> Graph:
    b = _Maker("softmax_columns")
    return b.g.graph(b.add("softmax", b.input(m, n, k), axis=1))


def layer_norm(m: Dim, n: Dim, _: Dim) -> Graph:
    b = _Maker("layer_norm")
    x = b.add("add", b.input(m, n), b.input(m, n))
    return b.g.graph(b.add("layer_norm", x, b.weight(n), b.weight(n), axis=-1))


def _reduction(op: str, axes: tuple[int, ...]) -> Callable[[Dim, Dim, Dim], Graph]:
    def build(m: Dim, n: Dim, k: Dim) -> Graph:
        b = _Maker(op)
        y = b.add(op, b.input(m, n, k), axes=axes, keepdims=False)
        return b.g.graph(b.add("neg", y))

    return build


def argmax(m: Dim, n: Dim, _: Dim) -> Graph:
    b = _Maker("argmax")
    return b.g.graph(b.add("argmax", b.input(m, n), axis=1))


def transposes(m: Dim, n: Dim, k: Dim) -> Graph:
    b = _Maker("transposes")
    x = b.input(m, n, k)
    one, two = (b.add("transpose", x, perm=p) for p in ((2, 0, 1), (0, 2, 1)))
    return b.g.graph(one, b.add("tanh", two))


def rearranged(m: Dim, n: Dim, k: Dim) -> Graph:
    """Padding, concatenation, slices and reversal in one formula."""
    b = _Maker("rearranged")
    x, y = b.input(m, n), b.input(m, k)
    joined = b.add("concat", x, y, b.add("neg", x), axis=1)
    padded = b.add("pad", joined, before=(0, 2), after=(1, 0))
    return b.g.graph(b.add("reverse", padded, axes=(1,)))


def gathered(m: Dim, n: Dim, k: Dim) -> Graph:
    b = _Maker("gathered")
    table, rows = b.input(m, n), b.input(k, dtype=I64)
    return b.g.graph(b.add("gather", table, rows, axis=0, mode="clip"))  # of any table's size


def grid_sample(m: Dim, n: Dim, k: Dim) -> Graph:
    """The grid, of random numbers, reaches beyond the image."""
    b = _Maker("grid_sample")
    x, grid = b.input(2, 2, m, n), b.input(2, k, 2, 2)
    modes = (("linear", "zeros"), ("nearest", "border"), ("cubic", "reflection"))
    return b.g.graph(*(b.add("grid_sample", x, grid, mode=m, padding=p) for m, p in modes))


def mlp(m: Dim, n: Dim, k: Dim) -> Graph:
    """Several kernels with residuals, so that buffers are shared and overwritten."""
    b = _Maker("mlp")
    x = b.input(m, k)
    h = b.add("relu", b.add("matmul", x, b.weight(k, n)))
    h = b.add("add", b.add("matmul", h, b.weight(n, k)), x)
    y = b.add("layer_norm", h, b.weight(k), axis=-1)
    return b.g.graph(b.add("add", b.add("softmax", y, axis=-1), h), b.add("tanh", h))


KERNELS: dict[str, Callable[[Dim, Dim, Dim], Graph]] = {
    **{f.__name__: f for f in (matmul, dense, batched_matmul, conv, pointwise_conv, depthwise)},
    **{f.__name__: f for f in (max_pool, average_pool, global_pool, softmax, softmax_columns)},
    **{f.__name__: f for f in (layer_norm, argmax, transposes, rearranged, gathered, mlp)},
    **{f.__name__: f for f in (grid_sample,)},
    "sum_rows": _reduction("reduce_sum", (2,)),
    "max_columns": _reduction("reduce_max", (0,)),
    "mean_middle": _reduction("reduce_mean", (1,)),
    "sum_all": _reduction("reduce_sum", (0, 1, 2)),
    "sum_ends": _reduction("reduce_sum", (0, 2)),
}

# Kernels whose dimensions must not be empty, or known when compiling.
NEEDS_FIXED_CHANNELS = ("conv", "pointwise_conv", "depthwise")
NEVER_EMPTY = ("argmax", "gathered", "max_pool", "average_pool", "grid_sample")


def fixed(dim: Dim) -> Expr:
    """A dimension as an expression."""
    return dim if isinstance(dim, Expr) else const(dim)
