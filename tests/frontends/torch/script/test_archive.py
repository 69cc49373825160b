from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
import torch
from torch import nn

from tests.frontends.torch.program.saved import entries, rewritten
from tilewright.core.errors import FrontendError
from tilewright.frontends.torch.script.archive import read_script


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.linear(x))


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("scripts") / "m.pt"
    torch.jit.script(Net().eval()).save(str(path))
    return path


def test_text_and_tensors(archive: Path) -> None:
    module = torch.jit.load(str(archive))
    found = read_script(archive)
    linear = found.root.attributes["linear"]
    torch.testing.assert_close(linear.attributes["weight"], module.linear.weight, rtol=0, atol=0)
    assert found.method(found.root, "forward").name == "forward"
    with pytest.raises(FrontendError, match="no method backward"):
        found.method(linear, "backward")


def test_damage_is_told(archive: Path, tmp_path: Path) -> None:
    changes = {
        "data.pkl": lambda data: data[:20],
        "test_archive.py": lambda data: data + b"\n(",
        "data/0": lambda data: data[:4],
    }
    for ending, change in changes.items():
        assert any(name.endswith(ending) for name in entries(archive)), ending
        path = rewritten(archive, tmp_path / "m.pt", {ending: change})
        with pytest.raises(FrontendError, match="TorchScript archive"):
            read_script(path)


def test_text_is_unpacked_up_to_a_limit(archive: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "bomb.pt", "w", zipfile.ZIP_DEFLATED) as made:
        for name, data in entries(archive).items():
            text = b"#" * (1 << 27) if name.endswith("test_archive.py") else data
            made.writestr(name, text)
    with pytest.raises(FrontendError, match="unpacks to"):
        read_script(tmp_path / "bomb.pt")
