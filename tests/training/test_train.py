from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import tilewright as tw
from tests.training.nets import batch, net
from tilewright.core.errors import ConfigError

OPTIMIZERS: dict[str, tuple[tw.optim.Optimizer, Callable[..., torch.optim.Optimizer]]] = {
    "sgd": (tw.optim.SGD(0.1, momentum=0.9), lambda p: torch.optim.SGD(p, 0.1, momentum=0.9)),
    "adamw": (tw.optim.AdamW(0.01), lambda p: torch.optim.AdamW(p, 0.01)),
    "adafactor": (tw.optim.Adafactor(), torch.optim.Adafactor),
}


def images() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, bias=False),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(36, 5),
    )


@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_a_module_of_torch(kind: str) -> None:
    ours, theirs = OPTIMIZERS[kind]
    torch.manual_seed(0)
    module = images()
    other = copy.deepcopy(module)
    trainer = tw.train(module, "cross_entropy", ours, inputs=("f32[N, 1, 8, 8]",), max_norm=0.5)
    optimizer = theirs(other.parameters())
    for rows in (6, 6, 3):
        x, y = torch.randn(rows, 1, 8, 8), torch.randint(0, 5, (rows,))
        optimizer.zero_grad()
        loss = F.cross_entropy(other(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(other.parameters(), 0.5)
        optimizer.step()
        np.testing.assert_allclose(trainer(x.numpy(), y.numpy()), loss.item(), rtol=1e-4)
    state = trainer.state()
    for name, value in other.state_dict().items():
        np.testing.assert_allclose(state[name], value.numpy(), rtol=1e-3, atol=1e-5)
    found = {n: torch.from_numpy(state[n]) for n in module.state_dict()}
    module.load_state_dict(found)


def test_dropout_is_drawn_anew_in_each_step_and_as_the_seed_says() -> None:
    module = nn.Sequential(nn.Linear(3, 64), nn.Dropout(0.5), nn.Linear(64, 4))

    def losses(seed: int) -> list[float]:
        trainer = tw.train(
            module, "cross_entropy", tw.optim.SGD(0.0), inputs=("f32[5, 3]",), seed=seed
        )
        return [trainer(*batch(0)) for _ in range(3)]

    first = losses(0)
    assert len(set(first)) == 3
    assert losses(0) == first
    assert not set(losses(1)) & set(first)


def test_an_onnx_model(tmp_path: Path) -> None:
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    rng = np.random.default_rng(0)
    weights = {"w": rng.normal(size=(3, 4)), "b": np.zeros(4)}
    graph = helper.make_graph(
        [
            helper.make_node("MatMul", ["x", "w"], ["h"]),
            helper.make_node("Add", ["h", "b"], ["y"]),
        ],
        "line",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 4])],
        [numpy_helper.from_array(v.astype(np.float32), n) for n, v in weights.items()],
    )
    path = tmp_path / "line.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)]), path)
    trainer = tw.train(path, "mse", tw.optim.Adam(0.05))
    slope, offset = rng.normal(size=(3, 4)), rng.normal(size=4)
    for i in range(300):
        x, _ = batch(i, 16)
        loss = trainer(x, (x @ slope + offset).astype(np.float32))
    assert loss < 1e-3
    np.testing.assert_allclose(trainer.parameters["w"], slope, atol=0.05)


def test_narrow_weights_learn_in_small_steps() -> None:
    trainer = tw.train(net("bf16"), "cross_entropy", tw.optim.SGD(1e-4))
    before = trainer.parameters
    x, y = batch(0)
    trainer(x.astype(trainer.model.inputs[0].dtype.numpy), y)
    after = trainer.parameters
    assert all(v.dtype == np.float32 for v in after.values())
    assert all(not np.array_equal(before[n], after[n]) for n in after)


def test_numbers_that_make_no_sense(tmp_path: Any) -> None:
    with pytest.raises(ConfigError, match=r"train\.norm"):
        tw.train(net(), "cross_entropy", tw.optim.SGD(0.1), max_norm=0.0)
