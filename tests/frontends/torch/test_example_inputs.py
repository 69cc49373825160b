from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import tilewright as tw
from tilewright.core.errors import ConfigError, ParseError
from tilewright.frontends.torch.capture import import_torch
from tilewright.frontends.torch.example_inputs import ExampleInputs


class Joined(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.cat([x @ x.mT, y[:, None].expand(-1, x.shape[0])])


def test_sizes_have_the_names_that_are_given() -> None:
    model = tw.compile(Joined().eval(), inputs=("f32[N, 8]", "f32[S]"))
    assert [str(port) for port in (*model.inputs, *model.outputs)] == [
        "x: f32[N, 8]",
        "y: f32[S]",
        "cat: f32[N + S, N]",
    ]
    for n, s in ((2, 3), (7, 7), (4, 1)):
        x, y = torch.randn(n, 8), torch.randn(s)
        np.testing.assert_allclose(model(x, y), Joined()(x, y), rtol=1e-5, atol=1e-5)


def test_a_size_may_be_that_of_several_inputs_and_types_stand_beside_tensors() -> None:
    module = nn.Bilinear(3, 3, 2).eval()
    graph = import_torch(module, {"input1": "f32[N, 3]", "input2": "f32[N, 3]"})
    assert graph.symbols() == ("N",) or list(graph.symbols()) == ["N"]
    given = ExampleInputs.of(("i64[4]", torch.ones(2)))
    assert given.args[0].dtype == torch.int64
    assert given.open_sizes() is None


def test_one_tensor_twice_is_two_inputs() -> None:
    x = torch.ones(2)
    first, second = ExampleInputs.of((x, x)).args
    assert first is x
    assert second is not x


def test_what_is_no_type_is_told() -> None:
    with pytest.raises(ConfigError, match="numbers or names"):
        ExampleInputs.of(("f32[N + 1]",))
    with pytest.raises(ConfigError, match="numbers or names"):
        ExampleInputs.of("seq(f32[3])")
    for text in ("f31[3]", "f32[3", "f32[3] x", ""):
        with pytest.raises(ParseError):
            ExampleInputs.of(text)
    with pytest.raises(ConfigError, match="none are given"):
        ExampleInputs.of(None)
