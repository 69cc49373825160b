from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.models import mlp
from tilewright.core.config import override
from tilewright.driver.compile_graph import compile_source
from tilewright.driver.options import make_options
from tilewright.runtime.container import read_container


def test_a_file_holds_what_memory_does(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    seen: list[str] = []
    artifact = compile_source(mlp(2), make_options(progress=seen.append))
    with override(time=True):
        artifact.write(tmp_path / "m.tw")
    assert "pack and write weights" in capsys.readouterr().err
    assert seen == ["graph", "kernels", "machine code", "write"]
    here, there = artifact.container(), read_container(tmp_path / "m.tw")
    assert here.objects == there.objects
    assert here.manifest["kernels"] == there.manifest["kernels"]
    size = len(there.weights)  # memory is padded to a page
    np.testing.assert_array_equal(here.weights[:size], there.weights)
    assert not here.weights[size:].any()
