from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from tests.frontends.torch.program.saved import entries, rewritten, saved
from tilewright.core.errors import FrontendError
from tilewright.frontends.torch.program.archive import read_archive


class Tied(nn.Module):
    """Weights of several types, two of one storage, and one that is a view with strides."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Parameter(torch.randn(3, 4))
        self.second = self.first
        self.register_buffer("narrow", torch.randn(5).bfloat16())
        self.register_buffer("turned", torch.randn(2, 3).T)
        self.register_buffer("empty", torch.zeros(0, 3))
        self.constant = torch.arange(4)

    def forward(self, x: torch.Tensor) -> Any:
        found = x @ self.first.T + self.second.sum() + self.constant.sum()
        return found, self.narrow, self.turned.sum(), self.empty.sum()


def test_tensors_are_those_that_were_saved(tmp_path: Path) -> None:
    module = Tied().eval()
    archive = read_archive(saved(module, (torch.randn(2, 4),), tmp_path / "m.pt2"))
    for name, tensor in (*module.named_parameters(), *module.named_buffers()):
        torch.testing.assert_close(archive.tensors[name], tensor, rtol=0, atol=0)
    np.testing.assert_array_equal(archive.tensors["constant"], np.arange(4))


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("programs")
    return saved(nn.Linear(4, 3).eval(), (torch.randn(2, 4),), folder / "m.pt2")


def _weights(change: Callable[[dict[str, Any]], None]) -> Callable[[bytes], bytes]:
    def changed(data: bytes) -> bytes:
        config = json.loads(data)
        change(config["config"]["weight"])
        return json.dumps(config).encode()

    return changed


CASES: dict[str, tuple[str, Callable[[bytes], bytes], str]] = {
    "no JSON": ("models/model.json", lambda data: data[:-9], "is damaged"),
    "deep": ("models/model.json", lambda _: b"[" * 100_000, "is damaged"),
    "no object": ("models/model.json", lambda _: b"[]", "does not say what it must"),
    "another version": (
        "models/model.json",
        lambda data: data.replace(b'"major": 8', b'"major": 9'),
        "has version 9 of its schema",
    ),
    "pickled": (
        "model_weights_config.json",
        _weights(lambda one: one.update(use_pickle=True)),
        "holds weight as a pickle",
    ),
    "too large": (
        "model_weights_config.json",
        _weights(lambda one: one["tensor_meta"].update(sizes=[{"as_int": 30}, {"as_int": 4}])),
        "weight is larger than its file of 48 bytes",
    ),
    "negative": (
        "model_weights_config.json",
        _weights(lambda one: one["tensor_meta"].update(strides=[{"as_int": -4}, {"as_int": 1}])),
        "a size of -4",
    ),
    "sparse": (
        "model_weights_config.json",
        _weights(lambda one: one["tensor_meta"].update(layout=1)),
        "a sparse layout",
    ),
    "a file outside": (
        "model_weights_config.json",
        _weights(lambda one: one.update(path_name="../../../etc/passwd")),
        "does not say what it must",
    ),
    "an unknown type": (
        "model_weights_config.json",
        _weights(lambda one: one["tensor_meta"].update(dtype=99)),
        "does not say what it must",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_damaged_is_told(case: str, program: Path, tmp_path: Path) -> None:
    ending, change, message = CASES[case]
    path = rewritten(program, tmp_path / "changed.pt2", {ending: change})
    with pytest.raises(FrontendError, match=message):
        read_archive(path)


def test_what_is_compressed_is_not_unpacked(program: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "bomb.pt2", "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in entries(program).items():
            archive.writestr(name, data)
    with pytest.raises(FrontendError, match="is compressed"):
        read_archive(tmp_path / "bomb.pt2")


def test_archives_cut_off(program: Path, tmp_path: Path) -> None:
    data = program.read_bytes()
    for length in (0, 10, len(data) // 2, len(data) - 30):
        (tmp_path / "cut.pt2").write_bytes(data[:length])
        with pytest.raises(FrontendError, match=r"program of torch\.export"):
            read_archive(tmp_path / "cut.pt2")
    with pytest.raises(FrontendError, match="cannot be read"):
        read_archive(tmp_path / "none.pt2")
