from __future__ import annotations

from inspect import signature
from pathlib import Path

import pytest
import torch
from torch import nn

from tilewright.core.errors import ConfigError
from tilewright.frontends.torch.script.archive import read_script
from tilewright.frontends.torch.script.module import ScriptModule


class Affine(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor, scale: float = 2.0) -> torch.Tensor:
        return x * scale + y


def test_a_module_follows_its_text(tmp_path: Path) -> None:
    torch.jit.script(Affine()).save(str(tmp_path / "m.pt"))
    archive = read_script(tmp_path / "m.pt")
    x, y = torch.randn(3), torch.randn(3)
    assert torch.equal(ScriptModule(archive, 2)(x, y), x * 2 + y)
    assert torch.equal(ScriptModule(archive, 3)(x, y, 3.0), x * 3 + y)
    named = ScriptModule(archive, ["y", "x"])
    assert list(signature(named.forward).parameters) == ["y", "x"]
    assert torch.equal(named(y=y, x=x), x * 2 + y)
    for inputs in (1, 4, ["x"], ["x", "z"]):
        with pytest.raises(ConfigError, match="a module that takes x, y, scale"):
            ScriptModule(archive, inputs)
