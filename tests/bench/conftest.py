"""A model with its inputs in files, as the engines' processes read them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.models import mlp, random_inputs, reference, save
from tilewright.bench.npz import write_npz


@pytest.fixture
def job(tmp_path: Path) -> dict[str, Any]:
    """A job in the form in which it is handed over."""
    inputs = random_inputs(mlp("N"), {"N": 2})
    write_npz(tmp_path / "inputs.npz", inputs)
    write_npz(tmp_path / "expected.npz", reference(mlp("N"), inputs))
    return {
        "model": str(save(mlp("N"), tmp_path / "m.onnx")),
        "inputs": str(tmp_path / "inputs.npz"),
        "expected": str(tmp_path / "expected.npz"),
        "outputs": str(tmp_path / "outputs.npz"),
        "output_names": ["probabilities"],
        "threads": 1,
        "dims": {"N": 2},
    }
