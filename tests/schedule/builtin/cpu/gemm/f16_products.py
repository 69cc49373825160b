"""GEMMs and convolutions of f16 whose products may be accumulated in f16."""

from __future__ import annotations

import numpy as np

from tilewright.core.dtypes import F16
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.types import tensor
from tilewright.ops.conv.conv import ConvAttrs
from tilewright.ops.graph_builder import GraphBuilder


def _weights(*shape: int) -> np.ndarray:
    rng = np.random.default_rng(shape)
    return (rng.standard_normal(shape) / np.prod(shape[1:]) ** 0.5).astype(np.float16)


def dense(m: int, n: int, k: int) -> Graph:
    """`relu(x @ w + bias)`."""
    g = GraphBuilder("dense")
    x = g.input("x", tensor(F16, m, k))
    y = g.add("matmul_f16acc", x, g.constant(_weights(k, n)))
    return g.graph(g.add("relu", g.add("add", y, g.constant(_weights(n)))))


def conv(size: int, channels: int, filters: int, groups: int = 1) -> Graph:
    """A padded 3x3 convolution."""
    g = GraphBuilder("conv")
    x = g.input("x", tensor(F16, 1, size, size, channels))
    w = g.constant(_weights(filters, channels // groups, 3, 3))
    attrs = ConvAttrs((1, 1), (1, 1, 1, 1), (1, 1), "channels_last", groups)
    return g.graph(g.add("conv_f16acc", x, w, attrs=attrs))
