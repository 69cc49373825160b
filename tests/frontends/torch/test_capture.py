from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from tests.frontends.torch.eager import ops, random
from tilewright.core.errors import ConfigError, FrontendError, UnsupportedError
from tilewright.frontends.torch.arrays import to_array
from tilewright.frontends.torch.capture import import_torch
from tilewright.ops.interpret import run_graph


def compare(module: nn.Module, *inputs: torch.Tensor) -> list[str]:
    """The operators of a module whose graph computes what it does."""
    graph = import_torch(module.eval(), inputs)
    with torch.no_grad():
        expected = module(*inputs)
    given = {v.name: to_array(x) for v, x in zip(graph.inputs, inputs, strict=True)}
    found = run_graph(graph, given)[graph.outputs[0]]
    np.testing.assert_allclose(found, expected.numpy(), rtol=1e-4, atol=1e-5)
    return ops(graph)


def test_a_module_and_the_names_of_its_inputs() -> None:
    module = nn.Linear(3, 2).eval()
    graph = import_torch(module, {"input": random(4, 3)})
    assert [v.name for v in graph.inputs] == ["input"]
    assert ops(graph) == ["transpose", "matmul", "add"]


def test_one_tensor_may_be_the_example_of_two_inputs() -> None:
    class Module(nn.Module):
        def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
            return a - b

    x, y = random(4, 3), random(4, 3, seed=1)
    for same in ((x, x), {"a": x, "b": x}):
        graph = import_torch(Module().eval(), same)
        given = {"a": to_array(x), "b": to_array(y)}
        np.testing.assert_array_equal(run_graph(graph, given)[graph.outputs[0]], (x - y).numpy())


def test_parameters_are_not_copied() -> None:
    module = nn.Linear(3, 2).eval()
    graph = import_torch(module, random(4, 3))
    data = {c.name: c.data for c in graph.constants}
    assert np.shares_memory(data["p_weight"], module.weight.detach().numpy())


def test_attention_is_kept() -> None:
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    assert "attention" in compare(layer, random(2, 5, 8))


def test_upsampling() -> None:
    assert compare(nn.Upsample(scale_factor=2.0), random(1, 2, 3, 4)) == ["resize_nearest"]
    assert compare(nn.UpsamplingBilinear2d(scale_factor=2), random(1, 2, 3, 4)) == ["resize"]


def test_an_exported_program_with_dynamic_sizes() -> None:
    module = nn.Sequential(nn.Linear(3, 4), nn.ReLU()).eval()
    shapes = {"input": {0: torch.export.Dim("batch", min=2)}}
    program = torch.export.export(module, (random(5, 3),), dynamic_shapes=shapes)
    graph = import_torch(program)
    assert len(graph.symbols()) == 1
    for size in (2, 7):
        x = random(size, 3)
        found = run_graph(graph, {graph.inputs[0].name: x.numpy()})[graph.outputs[0]]
        np.testing.assert_allclose(found, module(x).detach().numpy(), rtol=1e-5, atol=1e-6)


class Counting(nn.Module):
    """Counts its calls."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        return x + self.calls


def test_what_is_refused() -> None:
    x = random(2, 3)
    with pytest.raises(ConfigError, match="none are given"):
        import_torch(nn.ReLU().eval())
    with pytest.raises(UnsupportedError, match="in training mode"):
        import_torch(nn.Dropout(), (x,))
    with pytest.raises(UnsupportedError, match="changes calls when it runs"):
        import_torch(Counting().eval(), (x,))
    with pytest.raises(FrontendError, match=r"torch.export cannot trace Linear"):
        import_torch(nn.Linear(4, 2).eval(), (x,))
