from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tilewright.bench.engines import ENGINES, REFUSED, EngineJob
from tilewright.core.errors import ConfigError
from tilewright.core.numeric_error import named
from tilewright.runtime.roofline.roofline import Level, Roofline

# The others take long to load, and f32 is not what these promise.
COMPARED = [n for n in ENGINES if n not in ("iree", "tvm-untuned", "openvino-default")]


@pytest.mark.parametrize("name", COMPARED)
def test_every_engine_gives_the_right_answer(name: str, job: dict[str, Any]) -> None:
    if not ENGINES[name].installed:
        pytest.skip(f"{name} is not installed")
    inputs, expected = dict(np.load(job["inputs"])), dict(np.load(job["expected"]))
    session = ENGINES[name].load(EngineJob(Path(job["model"]), inputs, 1, job["dims"]))
    found = named(session.fetch(session.call()), expected)["probabilities"]
    tolerance = 3e-2 if name.endswith(("bf16", "fp16")) else 1e-5
    np.testing.assert_allclose(found, expected["probabilities"], atol=tolerance)


def test_ours_tells_of_its_kernels(job: dict[str, Any]) -> None:
    inputs = dict(np.load(job["inputs"]))
    roofline = Roofline(1, {"f32": 1e9}, (Level("memory", float("inf"), 1e9),)).data()
    given = EngineJob(Path(job["model"]), inputs, 1, job["dims"], roofline)
    session = ENGINES["tilewright"].load(given)
    assert session.kernels is not None
    rows = session.kernels()
    assert all(row["min_ms"] >= 0 and row["of_roof"] > 0 for row in rows)


def test_ours_without_a_pass(job: dict[str, Any]) -> None:
    given = EngineJob(Path(job["model"]), dict(np.load(job["inputs"])), 1, job["dims"])
    assert ENGINES["tilewright"].load(replace(given, disable_passes=("cse",))).call()
    with pytest.raises(ConfigError, match="no pass named 'cheese'"):
        ENGINES["tilewright"].load(replace(given, disable_passes=("cheese",)))


def test_a_saved_model(job: dict[str, Any], tmp_path: Path) -> None:
    import tilewright as tw

    path = tw.compile(job["model"]).save(tmp_path / "m.tw")
    inputs = dict(np.load(job["inputs"]))
    session = ENGINES["tilewright"].load(EngineJob(path, inputs, 1))
    assert session.call()["probabilities"].shape == (2, 5)


def test_names() -> None:
    assert not REFUSED.keys() & ENGINES.keys()
    assert next(iter(ENGINES)) == "tilewright"
    assert all(engine.summary for engine in ENGINES.values())
