"""What a saved model says about itself; `runtime/cpu/executable.py` documents the fields."""

from __future__ import annotations

from typing import Any

from tilewright.arith.expr import Expr, Var, as_int
from tilewright.core.errors import UnsupportedError
from tilewright.driver.artifact.entry_point import frame_data
from tilewright.driver.model_build import ModelBuild
from tilewright.driver.program.linearize import limit
from tilewright.driver.report.explain import explain_build
from tilewright.driver.report.step_rows import schedules, step_rows
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.types import TensorType
from tilewright.target.target import kind_of


def make_manifest(build: ModelBuild) -> dict[str, Any]:
    """The manifest of a built model."""
    rows = step_rows(build)
    graph, target = build.graph, build.target
    symbols = graph.symbols()
    inputs, outputs = graph_ports(graph)
    return {
        "target": {
            "kind": kind_of(target),
            "triple": target.triple,
            "cpu": target.cpu,
            "features": list(target.features),
        },
        "precision": build.precision,
        "symbols": list(symbols),
        "dim_sources": [_source(graph, s) for s in symbols],
        "inputs": inputs,
        "outputs": outputs,
        "kernels": rows,
        "schedules": schedules(build),
        "explain": explain_build(build, rows),
        "counters": {"kernels": len(build.distinct_kernels), "steps": len(build.steps)},
        "threads": 0,
        **_data_dependent(build),
        **frame_data(build),
        **_index_checks(build),
        "errors": {str(status): message for status, message in build.host.errors.items()},
    }


def _data_dependent(build: ModelBuild) -> dict[str, Any]:
    """Sizes that depend on data, and how large the outputs can become."""
    dims = build.program.dynamic_dims
    if not dims:
        return {}
    shapes = [build.graph.tensor_type(o).shape for o in build.graph.outputs]
    limits = [[_dimension(limit(d, build.program.limits)) for d in shape] for shape in shapes]
    return {"data_dependent_sizes": list(dims), "output_limits": limits}


def _index_checks(build: ModelBuild) -> dict[str, Any]:
    """How many bytes the words of index checks have, and where those of each status are."""
    if not build.host.index_checks:
        return {}
    places = {str(status): list(place) for status, place in build.host.index_checks.items()}
    return {"index_checks": {"bytes": build.code.status_bytes, "places": places}}


def graph_ports(graph: Graph) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The inputs and the outputs of a graph: names, element types, shapes."""
    inputs = [_port(v.name, v.type) for v in graph.inputs]
    return inputs, [_port(o, graph.types[o]) for o in graph.outputs]


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
