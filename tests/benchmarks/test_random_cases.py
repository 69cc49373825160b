"""What the sweep draws: the same for the same seed, within bounds, and ONNX that torch can run."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(autouse=True)
def _programs_importable(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(BENCHMARKS)
    yield
    for name in ("random_case", "random_cases", "operators"):
        sys.modules.pop(name, None)


def test_every_kind_agrees_with_onnx_runtime(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    onnxruntime = pytest.importorskip("onnxruntime")
    from operators import torch_kernel  # type: ignore[import-not-found]
    from random_cases import KINDS, draw_cases  # type: ignore[import-not-found]

    for case in draw_cases(3, len(KINDS)):
        assert case.within_bounds()
        folder = tmp_path / case.kind
        case.write(folder, 0)
        onnx.checker.check_model(str(folder / "model.onnx"))
        inputs = dict(np.load(folder / "inputs.npz"))
        session = onnxruntime.InferenceSession(str(folder / "model.onnx"))
        (wanted,) = session.run(None, inputs)
        got = torch_kernel(folder / "model.onnx")(
            **{name: torch.from_numpy(value) for name, value in inputs.items()}
        )
        np.testing.assert_allclose(got.numpy(), wanted, rtol=1e-3, atol=1e-3, err_msg=case.kind)


def test_seeds() -> None:
    pytest.importorskip("onnx")
    from random_cases import KINDS, draw

    texts = [[draw(kind, seed, 0).text for kind in KINDS] for seed in (1, 1, 2)]
    assert texts[0] == texts[1] != texts[2]
