from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from tilewright.core.errors import UnsupportedError
from tilewright.frontends.torch.training_capture import import_training
from tilewright.ops.interpret import run_graph


class Tied(nn.Module):
    """An embedding whose rows are the weights of the last layer."""

    def __init__(self) -> None:
        super().__init__()
        self.rows = nn.Embedding(7, 4)
        self.norm = nn.BatchNorm1d(4)
        self.last = nn.Linear(4, 7, bias=False)
        self.last.weight = self.rows.weight

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.last(self.norm(self.rows(x).mT).mT)
        return y


def test_parameters_buffers_and_results() -> None:
    module = Tied()
    x = torch.tensor([[1, 2, 6], [0, 1, 1]])
    found = import_training(module, (x,))
    assert sorted(found.parameters) == ["last.weight", "norm.bias", "norm.weight"]
    assert list(found.buffers) == [
        *("norm.running_mean", "norm.running_var", "norm.num_batches_tracked"),
    ]
    places = {**found.parameters, **{n: place for n, (place, _) in found.buffers.items()}}
    given = {place: found.values[name] for name, place in places.items()}
    results = run_graph(found.graph, {**given, "x": x.numpy()})
    y = module(x)
    np.testing.assert_allclose(
        results[found.graph.outputs[-1]], y.detach().numpy(), rtol=1e-4, atol=1e-5
    )
    for name, (_, after) in found.buffers.items():
        wanted = module.state_dict()[name].numpy()
        np.testing.assert_allclose(results[after], wanted, rtol=1e-5)
        assert not np.array_equal(found.values[name], wanted), "values are copies"


class Counting(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x.add_(1)
        return x * 2


def test_inputs_that_are_written_to() -> None:
    with pytest.raises(UnsupportedError, match=r"torch\.mutation"):
        import_training(Counting(), (torch.zeros(2),))
