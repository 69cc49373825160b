"""Graphs with products of bf16, and their kernels as scheduled for a machine, interpreted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import ml_dtypes
import numpy as np

from tests.codegen.native_func import run_native
from tests.passes.contexts import ON_CPU
from tests.schedule.builtin.scheduled import assert_replays
from tilewright.arith.evaluate import evaluate
from tilewright.core.dtypes import BF16
from tilewright.driver.artifact.packed_weights import pack
from tilewright.finalize.cpu.pipeline import finalize
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.loop.interp.run import run_func
from tilewright.ir.loop.nodes import Func
from tilewright.ir.loop.verify import verify_func
from tilewright.ir.types import tensor
from tilewright.lower.lower_kernel import lower_group
from tilewright.ops.conv.im2col import Im2ColAttrs
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.passes.fuse import fuse
from tilewright.schedule.builtin.cpu.select_rule import schedule_func
from tilewright.schedule.builtin.rules import ScheduledFunc
from tilewright.target.cpu import CpuTarget
from tilewright.target.host import host

Arrays = Mapping[str, np.ndarray]


def weights(*shape: int) -> np.ndarray:
    """Random constants in bf16."""
    rng = np.random.default_rng(shape)
    return (rng.standard_normal(shape) / shape[0] ** 0.5).astype(ml_dtypes.bfloat16)


def product(rows: object, depth: int, columns: int) -> Graph:
    """`relu(x @ w + b)`."""
    g = GraphBuilder("product")
    x = g.input("x", tensor(BF16, rows, depth))  # type: ignore[arg-type]
    y = g.add("matmul_f32out", x, g.constant(weights(depth, columns)))
    bias = np.arange(columns, dtype=np.float32)
    return g.graph(g.add("relu", g.add("add", y, g.constant(bias))))


def convolution(
    width: object, channels: int, filters: int, stride: int, pad: int, height: object = None
) -> Graph:
    """A 3 by 3 convolution of an image, square by default, as a product of its windows."""
    g = GraphBuilder("convolution")
    x = g.input("x", tensor(BF16, 2, height or width, width, channels))  # type: ignore[arg-type]
    where = Im2ColAttrs((stride,) * 2, (pad,) * 4, (1, 1), "channels_last", (3, 3), 9 * channels)
    rows = g.add("im2col", x, attrs=where)
    return g.graph(g.add("matmul_f32out", rows, g.constant(weights(9 * channels, filters))))


def kernel(graph: Graph) -> tuple[Func, frozenset[str], Graph]:
    """The loops of the one kernel that a graph becomes, and the parameters that are constants."""
    fused = fuse(graph, ON_CPU)
    (node,) = fused.nodes
    func = lower_group(node.regions[0]).func
    known = fused.constant_by_name
    names = [p.name for p in func.params]
    return func, frozenset(n for n, i in zip(names, node.inputs, strict=False) if i in known), fused


def scheduled(graph: Graph, target: CpuTarget) -> ScheduledFunc:
    """The kernel of a graph, scheduled, its trace replayed."""
    func, constants, _ = kernel(graph)
    result = schedule_func(func, constants, target)
    verify_func(result.func)
    assert_replays(func, result)
    return result


def interpreted(
    result: ScheduledFunc, graph: Graph, x: np.ndarray, sizes: Mapping[str, int] | None = None
) -> np.ndarray:
    """What the scheduled kernel computes, by the loop interpreter."""
    arrays = _arguments(result.func, result.func, graph, x, sizes or {})
    run_func(result.func, arrays, dict(sizes or {}))
    return arrays[result.func.outputs[0]]


def executed(
    result: ScheduledFunc, graph: Graph, x: np.ndarray, sizes: Mapping[str, int] | None = None
) -> np.ndarray:
    """What it computes on this machine, its tiles as loops."""
    plain = finalize(result.func, replace(host(), features=()))
    arrays = _arguments(result.func, plain, graph, x, sizes or {})
    run_native(plain, arrays, sizes, threads=2)
    return arrays[plain.outputs[0]]


def _arguments(
    func: Func, plain: Func, graph: Graph, x: np.ndarray, sizes: Mapping[str, int]
) -> dict[str, np.ndarray]:
    """The operands packed as `func` wants them, results and workspaces undefined."""
    (node,) = kernel(graph)[2].nodes
    given = {"x": x, **{c.name: c.data for c in graph.constants}}
    inputs = dict(zip((p.name for p in func.params), node.inputs, strict=False))
    layouts = dict(func.layouts)
    arrays: dict[str, np.ndarray] = {}
    for p in plain.params:
        shape = [evaluate(d, sizes) for d in p.shape]
        if p.name in inputs:
            data = given[inputs[p.name]]
            data = pack(data, layouts[p.name]) if p.name in layouts else data
            arrays[p.name] = np.ascontiguousarray(data).reshape(shape)
        else:
            arrays[p.name] = np.full(shape, np.nan).astype(p.dtype.numpy)
    return arrays
