from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import tilewright as tw
from tests.frontends.torch.script.test_evaluate import check


class Numbers(nn.Module):
    """Numbers, tuples and lists of tensors that differ by branch."""

    def forward(self, x: torch.Tensor) -> Any:
        pair = (x, x + 1)
        factor = 2.0
        parts = [x]
        if x.sum() > 0:
            factor = 3.0
            pair = (x.sin(), x.cos())
            parts = [x + 5]
        return pair[0] * factor, pair[1], parts[0]


def test_what_a_branch_changes(tmp_path: Path) -> None:
    x = torch.rand(3)
    check(Numbers().eval(), tmp_path / "m.pt", (x,), (-x,))


class Counting(nn.Module):
    """A loop that counts by a number, and reads a weight."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.tensor(1.5))

    def forward(self, x: torch.Tensor) -> Any:
        i = 0
        while bool(x.max() < 30.0):
            x = x * self.weight
            i += 1
        return x, i


def test_a_loop_that_counts(tmp_path: Path) -> None:
    x = torch.rand(3) + 1
    check(Counting().eval(), tmp_path / "m.pt", (x,), (x + 50,), (x * 0.1 + 0.5,))


class Appending(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        kept = [x]
        if bool(x.sum() > 0):
            kept.append(x + 1)
        return torch.stack(kept).sum(0)


class Sizes(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x
        if bool(x.sum() > 0):
            y = torch.cat([x, x])
        return y


@pytest.mark.parametrize(("kind", "message"), [(Appending, "decide what kept"), (Sizes, "")])
def test_what_branches_cannot_be_is_told(
    kind: type[nn.Module], message: str, tmp_path: Path
) -> None:
    path = tmp_path / "m.pt"
    torch.jit.script(kind().eval()).save(str(path))
    with pytest.raises(tw.Error, match=message):
        tw.compile(path, inputs=(torch.rand(3),))
