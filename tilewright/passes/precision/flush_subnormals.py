"""Flush subnormal weights of products to zero.

Weight decay leaves weights of 1e-39 in filters that are nearly gone. x86 cores take over a hundred
cycles for a vector with one such operand: those of two layers make a model that finds text in an
image four times as slow. Beside weights of usual size they are lost in the rounding of a sum; where
the largest weight is itself tiny, nothing is flushed.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from tilewright.core.dtypes import F32
from tilewright.ir.graph.nodes import Graph, Node
from tilewright.passes.context import PassContext
from tilewright.passes.rewriter import Rewriter, rewrite_graph

PRODUCTS = ("matmul", "conv")
TINY = np.finfo(np.float32).tiny
# The largest weight is at least this: f32 has 24 bits, and a subnormal one is below 2^-66 of it.
LEAST = np.float32(2.0**-60)


def flush_subnormals(graph: Graph, context: PassContext) -> Graph:
    """Replace subnormal weights of matmuls and convolutions by zeros."""
    return rewrite_graph(graph, partial(_flush, {}), PRODUCTS)


def _flush(copies: dict[str, str], g: Rewriter, n: Node) -> str | None:
    for name in n.inputs:
        if name not in copies:  # products that share a weight share its copy
            copies[name] = _without_subnormals(g, name)
    inputs = [copies[name] for name in n.inputs]
    return None if inputs == list(n.inputs) else g.add(n.op, *inputs, attrs=n.attrs)


def _without_subnormals(g: Rewriter, name: str) -> str:
    """The constant to read instead of an operand; the operand itself where that is as well."""
    data = g.constant_data(name)
    new = data if data is None else flushed(data)
    return name if new is None or new is data else g.constant(new)


def flushed(weights: np.ndarray) -> np.ndarray:
    """The weights without subnormal numbers; the same array where there is nothing to flush."""
    if weights.dtype != F32.numpy or not weights.size:
        return weights
    size = np.abs(weights)
    subnormal = (size > 0) & (size < TINY)
    if not subnormal.any() or not (size >= LEAST).any():
        return weights
    return np.where(subnormal, np.float32(0), weights)
