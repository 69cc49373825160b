from __future__ import annotations

import math
from typing import Any

import torch

from tilewright.frontends.torch.program.interpret import run_graph

X = {"as_tensor": {"name": "x"}}


def call(target: str, *args: Any, outputs: Any, **named: Any) -> dict[str, Any]:
    inputs = [{"name": "", "arg": one, "kind": 1} for one in args]
    inputs += [{"name": name, "arg": one, "kind": 2} for name, one in named.items()]
    return {"target": f"torch.ops.aten.{target}", "inputs": inputs, "outputs": outputs}


def test_numbers_lists_and_keywords() -> None:
    graph = {
        "nodes": [
            call("full.default", {"as_ints": [2]}, {"as_float": "-Infinity"}, outputs=[X]),
            call(
                "to.dtype",
                X,
                {"as_scalar_type": 8},
                outputs=[{"as_tensor": {"name": "y"}}],
            ),
        ],
        "outputs": [X, {"as_tensor": {"name": "y"}}, {"as_int": 3}, {"as_none": True}],
    }
    x, y, three, none = run_graph(graph, {})
    assert x.tolist() == [-math.inf, -math.inf]
    assert y.dtype == torch.float64
    assert (three, none) == (3, None)


def test_several_results_and_lists_of_results() -> None:
    names = [{"name": "a"}, {"name": "b"}]
    graph = {
        "nodes": [
            call("split.Tensor", X, {"as_int": 2}, outputs=[{"as_tensors": names}]),
            call(
                "max.dim",
                X,
                {"as_int": 0},
                outputs=[{"as_tensor": {"name": "m"}}, {"as_tensor": {"name": "i"}}],
            ),
        ],
        "outputs": [{"as_tensors": names}, {"as_tensor": {"name": "i"}}],
    }
    parts, index = run_graph(graph, {"x": torch.tensor([1.0, 5.0, 2.0])})
    assert [part.tolist() for part in parts] == [[1.0, 5.0], [2.0]]
    assert index == 1


def test_devices_are_the_processor() -> None:
    cuda = {"as_device": {"type": "cuda", "index": 3}}
    graph = {
        "nodes": [call("zeros.default", {"as_ints": [2]}, device=cuda, outputs=[X])],
        "outputs": [X],
    }
    assert run_graph(graph, {})[0].device.type == "cpu"
