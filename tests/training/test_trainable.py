from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from tests.training.nets import net, with_constants
from tilewright.core.dtypes import BF16, F32
from tilewright.core.errors import ConfigError
from tilewright.ir.graph.parse import parse_graph
from tilewright.ir.types import TensorType
from tilewright.ops.attrs import make_attrs
from tilewright.training.trainable import trainable, with_masters


def test_weights_become_inputs() -> None:
    graph = net()
    model = trainable(graph, None, None, None)
    assert list(model.parameters) == ["w1", "b1", "w2"]
    assert [v.name for v in model.graph.inputs] == ["x", "w1", "b1", "w2"]
    assert model.results == graph.outputs
    model.values["w1"][:] = 0
    assert graph.constant_by_name["w1"].data.any(), "values are copies"


def test_only_some_weights() -> None:
    model = trainable(net(), None, None, ["w2"])
    assert list(model.parameters) == list(model.values) == ["w2"]
    assert [c.name for c in model.graph.constants] == ["w1", "b1"]
    with pytest.raises(ConfigError, match="w1, b1, w2"):
        trainable(net(), None, None, ["w3"])


def test_statistics_and_what_has_no_gradient_are_no_weights() -> None:
    text = """
    graph @net(x: f32[N, 3], s: f32[3], b: f32[3], m: f32[3], v: f32[3], limit: f32[3]) {
      %y: f32[N, 3] = batch_norm(%x, %s, %b, %m, %v) {epsilon=0.001}
      %big: bool[N, 3] = greater(%y, %limit)
      %z: f32[N, 3] = where(%big, %y, %x)
      return %z
    }
    """
    values = {name: np.ones(3, np.float32) for name in ("s", "b", "m", "v", "limit")}
    graph = with_constants(parse_graph(text, make_attrs), values)
    assert list(trainable(graph, None, None, None).parameters) == ["s", "b", "limit"]


def test_a_module_of_torch() -> None:
    module = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout(0.5))
    module[0].bias.requires_grad_(False)
    model = trainable(module, ("f32[N, 3]",), None, None)
    assert list(model.parameters) == ["0.weight", "1.weight", "1.bias"]
    assert list(model.buffers) == [
        *("1.running_mean", "1.running_var", "1.num_batches_tracked"),
    ]
    assert model.seed is not None
    some = trainable(module, ("f32[N, 3]",), None, ["1.bias"])
    assert list(some.parameters) == ["1.bias"]
    assert list(some.values) == ["1.bias", *model.buffers]
    calm = trainable(module.eval(), ("f32[N, 3]",), None, None)
    assert calm.seed is None
    assert not calm.buffers


def test_narrow_weights_are_kept_wide() -> None:
    model = with_masters(trainable(net("bf16"), None, None, None))
    assert all(value.dtype == np.float32 for value in model.values.values())
    for place in model.parameters.values():
        t = model.graph.types[place]
        assert isinstance(t, TensorType)
        assert t.dtype is F32
    t = model.graph.types["w1"]
    assert isinstance(t, TensorType)
    assert t.dtype is BF16
    plain = trainable(net(), None, None, None)
    assert with_masters(plain).graph.nodes == plain.graph.nodes


def test_a_program_is_refused() -> None:
    program = torch.export.export(nn.Linear(2, 2), (torch.zeros(1, 2),))
    with pytest.raises(ConfigError, match=r"train\.program"):
        trainable(program, None, None, None)
