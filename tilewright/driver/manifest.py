"""What a saved model says about itself; `runtime/executable.py` documents the fields."""

from __future__ import annotations

from typing import Any

from tilewright.arith.expr import Expr, Var, as_int
from tilewright.core.errors import UnsupportedError
from tilewright.driver.build import ModelBuild
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.types import TensorType


def make_manifest(build: ModelBuild, explanation: str, counters: dict[str, Any]) -> dict[str, Any]:
    """The manifest of a built model."""
    graph, target = build.graph, build.target
    symbols = graph.symbols()
    return {
        "target": {
            "triple": target.triple,
            "cpu": target.cpu,
            "features": list(target.features),
        },
        "symbols": list(symbols),
        "dim_sources": [_source(graph, s) for s in symbols],
        "inputs": [_port(v.name, v.type) for v in graph.inputs],
        "outputs": [_port(o, graph.types[o]) for o in graph.outputs],
        "kernels": [_kernel(s.kernel.name, s.kernel.flops, s.kernel.bytes) for s in build.steps],
        "explain": explanation,
        "counters": counters,
        "threads": 0,
    }


def _source(graph: Graph, symbol: str) -> list[int]:
    """Which input and axis gives the value of a symbolic size."""
    for number, v in enumerate(graph.inputs):
        if isinstance(v.type, TensorType) and Var(symbol) in v.type.shape:
            return [number, v.type.shape.index(Var(symbol))]
    raise UnsupportedError(
        "driver.symbol",
        f"size {symbol} occurs only inside formulas of input dimensions",
        help=f"give it a value: compile(..., dims={{{symbol!r}: ...}})",
    )


def _port(name: str, type: object) -> dict[str, Any]:
    assert isinstance(type, TensorType), name
    return {"name": name, "dtype": type.dtype.name, "shape": [_dimension(d) for d in type.shape]}


def _dimension(d: Expr) -> int | str:
    size = as_int(d)
    return str(d) if size is None else size


def _kernel(name: str, flops: Expr, moved: Expr) -> dict[str, Any]:
    return {"name": name, "flops": as_int(flops), "bytes": as_int(moved)}
