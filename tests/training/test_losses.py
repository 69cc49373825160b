from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from tilewright.arith.expr import const
from tilewright.core.dtypes import F32, I64
from tilewright.core.errors import ConfigError
from tilewright.ir.types import TensorType
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.ops.interpret import run_graph
from tilewright.ops.traced_value import Value
from tilewright.training.losses import LOSSES, named_loss

THEIRS = {
    "cross_entropy": F.cross_entropy,
    "binary_cross_entropy": F.binary_cross_entropy_with_logits,
    "mse": F.mse_loss,
    "l1": F.l1_loss,
    "huber": F.huber_loss,
}


def computed(name: str, x: np.ndarray, target: np.ndarray) -> np.ndarray:
    g = GraphBuilder("loss")
    loss = named_loss(name)
    t = TensorType(F32, tuple(map(const, x.shape)))
    given, wanted = g.input("x", t), g.input("target", loss.target(t))
    assert g.type(wanted).shape == tuple(map(const, target.shape))
    y = loss.formula(Value(g, given), Value(g, wanted)).name
    return run_graph(g.graph(y), {"x": x, "target": target})[y]


@pytest.mark.parametrize("name", sorted(LOSSES))
@pytest.mark.parametrize("shape", [(5, 3), (2, 3, 4, 1)])
def test_losses_are_those_of_torch(name: str, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    x = (rng.normal(size=shape) * 3).astype(np.float32)
    if name == "cross_entropy":
        target = rng.integers(0, 3, (shape[0], *shape[2:]))
    else:
        target = rng.uniform(size=shape).astype(np.float32)
    theirs = THEIRS[name](torch.tensor(x), torch.tensor(target))
    np.testing.assert_allclose(computed(name, x, target), theirs.numpy(), rtol=1e-5)


def test_far_logits_do_not_overflow() -> None:
    x = np.array([[1e4, -1e4]], np.float32)
    found = computed("binary_cross_entropy", x, np.array([[1, 1]], np.float32))
    np.testing.assert_allclose(found, 5e3)


def test_a_loss_that_is_not_known() -> None:
    with pytest.raises(ConfigError, match="mse"):
        named_loss("mae")
    with pytest.raises(ConfigError, match="classes"):
        named_loss("cross_entropy").target(TensorType(F32, (const(3),)))
    assert named_loss("cross_entropy").target(TensorType(F32, (const(3), const(4)))).dtype is I64
