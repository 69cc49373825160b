"""Import and passes take time linear in a model's nodes.

What is counted are the calls of Python functions, which no machine's load changes. From 2n to 4n
nodes they grow twice as much as from n to 2n; what all sizes have in common drops out.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType
from typing import Any

import onnx
import pytest

from tilewright.core.config import override
from tilewright.driver.compile_graph import optimized_graph
from tilewright.driver.options import CompileOptions
from tilewright.target.registry import resolve_cpu

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
NODES = 60
# Quadratic time would be 4.
MAX_GROWTH = 2.3


@pytest.fixture
def scaling(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import scaling as module

    return module


def calls_of_compiling(model: onnx.ModelProto) -> int:
    """How many functions are called until a model is a graph of kernels."""
    count = 0

    def note(frame: FrameType, event: str, arg: object) -> None:
        nonlocal count
        count += event == "call"

    target = resolve_cpu("aarch64")
    with override(verify=1):
        sys.setprofile(note)
        try:
            optimized_graph(model, CompileOptions(target))
        finally:
            sys.setprofile(None)
    return count


@pytest.mark.parametrize(
    "name",
    [
        "chain",
        "dense",
        "pointwise_residual",
        "branches",
        "fan_out",
        "summed",
        "shapes",
        "convolutions",
        "backwards",
        "rearranged",
    ],
)
def test_twice_the_nodes_are_twice_the_work(scaling: Any, name: str) -> None:
    models = [scaling.MODELS[name](NODES * times) for times in (1, 1, 2, 4)]
    # The first one fills tables that live as long as the process.
    _, once, twice, four_times = map(calls_of_compiling, models)
    assert four_times - twice <= MAX_GROWTH * (twice - once)


def test_models_have_about_as_many_nodes_as_asked_for(scaling: Any) -> None:
    for make in scaling.MODELS.values():
        model = make(60)
        assert 40 <= len(model.graph.node) <= 62
