from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import tilewright as tw


def check(module: nn.Module | torch.jit.ScriptModule, path: Path, *cases: Any) -> None:
    """The compiled archive of a scripted module gives what the module gives."""
    scripted = module if isinstance(module, torch.jit.ScriptModule) else torch.jit.script(module)
    scripted.save(str(path))
    model = tw.compile(path, inputs=cases[0])
    for case in cases:
        expected = scripted(*case)
        found = model(*case)
        expected = expected if isinstance(expected, tuple | list) else (expected,)
        found = found if isinstance(found, tuple | list) else (found,)
        for ours, theirs in zip(found, expected, strict=True):
            theirs = torch.as_tensor(theirs).detach()
            np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


class Block(nn.Module):
    """Submodules, lists, defaults, loops over numbers, conditions on sizes."""

    def __init__(self) -> None:
        super().__init__()
        self.convs = nn.ModuleList([nn.Conv2d(3, 3, 3, padding=1) for _ in range(2)])
        self.norm = nn.BatchNorm2d(3)
        self.head = nn.Sequential(nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(12, 4))
        self.scale = 0.5

    def forward(self, x: torch.Tensor, power: int = 2) -> Any:
        kept: list[torch.Tensor] = []
        for conv in self.convs:
            x = nn.functional.relu(self.norm(conv(x))) + x * self.scale
            kept.append(x)
        for i in range(power):
            x = x * (i + 1)
        if x.shape[2] > 4 and x.dim() == 4:
            x = x[:, :, 1:-1]
        return self.head(x), torch.stack(kept).sum(0)


def test_modules_in_modules(tmp_path: Path) -> None:
    check(Block().eval(), tmp_path / "m.pt", (torch.randn(2, 3, 7, 5),))


def test_traced_modules(tmp_path: Path) -> None:
    class Reshaping(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            n, c = x.shape[0], x.shape[1] * 2
            return x.reshape(n, c, -1).transpose(1, 2).softmax(-1)

    x = torch.randn(2, 3, 4)
    check(torch.jit.trace(Reshaping().eval(), (x,)), tmp_path / "m.pt", (x,))


class Deciding(nn.Module):
    """What values of tensors decide: a branch in a branch, and a loop."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(3, 3) * 0.3)

    def forward(self, x: torch.Tensor) -> Any:
        steps = torch.zeros((), dtype=torch.int64)
        if x.sum() > 0:
            y = x @ self.weight
            if x.max() > 2:
                y = y + 1
        else:
            y = -x
        while bool(y.abs().max() < 50.0) and bool(steps < 40):
            y = y * 2 + 1
            steps = steps + 1
        return y, steps


def test_control_flow_on_values(tmp_path: Path) -> None:
    x = torch.rand(4, 3)
    check(Deciding().eval(), tmp_path / "m.pt", (x,), (x * 5,), (-x,), (x * 1000,))


def test_recurrent_layers_and_tuples(tmp_path: Path) -> None:
    class Recurrent(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lstm = nn.LSTM(3, 4, batch_first=True)

        def forward(self, x: torch.Tensor) -> Any:
            y, (h, c) = self.lstm(x)
            return y, h, c

    check(Recurrent().eval(), tmp_path / "m.pt", (torch.randn(2, 5, 3),))


def test_what_is_refused(tmp_path: Path) -> None:
    class Counting(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.calls = 0

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.calls = self.calls + 1
            return x + self.calls

    path = tmp_path / "m.pt"
    torch.jit.script(Counting().eval()).save(str(path))
    with pytest.raises(tw.Error, match="changes calls when it runs"):
        tw.compile(path, inputs=(torch.randn(2),))
    with pytest.raises(tw.Error, match="compiled for example inputs"):
        tw.compile(path)
    with pytest.raises(tw.Error, match="2 example inputs are given to a module that takes x"):
        tw.compile(path, inputs=(torch.randn(2), torch.randn(2)))
