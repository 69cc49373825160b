from __future__ import annotations

import gzip
import json
import math
from pathlib import Path

import numpy as np
import pytest

from tilewright.core.errors import TuneError
from tilewright.tune.candidate import Candidate
from tilewright.tune.space.table import tabular_space
from tilewright.tune.space.tabular import About, TabularEntry, TabularSpace
from tilewright.tune.space.tabular_files import read_space, write_space
from tilewright.tune.space.variation import enumerate_all


def _row(a: int, mode: str, time: object, invalidity: str = "correct") -> dict:
    return {
        "configuration": {"a": a, "mode": mode},
        "invalidity": invalidity,
        "measurements": [{"name": "time", "value": time, "unit": ""}],
    }


T4 = {
    "metadata": {"timeunit": "miliseconds"},
    "results": [
        _row(16, "x", 2.5),
        _row(2, "y", 1.25),
        _row(2, "x", "RuntimeFailedConfig", "runtime"),
    ],
    "schema_version": "1.0.0",
}


@pytest.mark.parametrize("compressed", [False, True])
def test_t4(tmp_path: Path, compressed: bool) -> None:
    path = tmp_path / "toy.json.gz"
    raw = json.dumps(T4).encode()
    path.write_bytes(gzip.compress(raw) if compressed else raw)
    space = read_space(path)
    assert space.name == "toy"
    assert space.knobs == {"a": (2, 16), "mode": ("x", "y")}
    assert dict(space.rows()) == {(16, "x"): 0.0025, (2, "y"): 0.00125, (2, "x"): "runtime"}


def test_the_small_format_keeps_everything_that_search_needs(tmp_path: Path) -> None:
    first = tmp_path / "toy.json"
    first.write_text(json.dumps(T4))
    space = read_space(first)
    write_space(tmp_path / "small.json", space, "a test", "none")
    again = read_space(tmp_path / "small.json")
    assert again.name == "toy"
    assert again.knobs == space.knobs
    assert dict(again.rows()) == dict(space.rows())


@pytest.mark.parametrize("ending", ["json", "json.gz"])
def test_features_travel_with_programs(tmp_path: Path, ending: str) -> None:
    """Decisions that do not always come up, and columns that are the same for all."""
    knobs = {"rule": ("rows", "tile"), "tile": (None, (4, 4), (8, 2))}
    times = {("rows", None): 0.002, ("tile", (4, 4)): 0.001}
    failures = {("tile", (8, 2)): "crashed"}
    programs = {
        key: TabularEntry(f"step({place % 2})\n", (7.0, float(place)))
        for place, key in enumerate([*times, *failures])
    }
    about = About(1e6, "tile", "func @kernel() {}", "a machine", ("flops", "place"))
    space = TabularSpace("toy", knobs, times, failures, programs, about)
    write_space(tmp_path / f"toy.{ending}", space, "", "")
    again = read_space(tmp_path / f"toy.{ending}")
    assert again.about == about
    assert again.programs == programs
    assert dict(again.rows()) == pytest.approx({**times, **failures})
    candidates = [Candidate((("rule", "rows"),)), Candidate((("rule", "tile"), ("tile", (8, 2))))]
    np.testing.assert_array_equal(again.features(candidates), [[7.0, 0.0], [7.0, 2.0]])
    assert next(iter(enumerate_all(again))) == candidates[0]
    features, seconds = again.measured()
    assert features.shape == (3, 2)
    assert sorted(seconds) == [0.001, 0.002, math.inf]


@pytest.mark.parametrize("name", ["convolution-a100", "dedispersion-a4000"])
def test_shipped_files_write_as_they_are(tmp_path: Path, name: str) -> None:
    space = tabular_space(name)
    write_space(tmp_path / "again.json", space, "", "")
    again = read_space(tmp_path / "again.json")
    assert dict(again.rows()) == pytest.approx(dict(space.rows()))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"results": []}',
        '{"unit": "ms", "knobs": {"a": [1]}, "configurations": ["1"], "times": [1]}',
        '{"unit": "ms", "knobs": {"a": [1]}, "configurations": ["0"], "times": []}',
        '{"unit": "ms", "knobs": {"a": [1]}, "configurations": ["0"], "times": [-1]}',
        '{"unit": "ms", "knobs": {"a": [1]}, "configurations": ["0"], "times": ["failed"]}',
        '{"unit": "ms", "knobs": {"a": [1]}, "configurations": ["0"], "times": [1], '
        '"flops": 1, "kind": "", "workload": "", "target": "", "traces": [""], "trace": [0], '
        '"features": {"a": [1, 2]}}',
        '{"unit": "hours", "knobs": {"a": [1]}, "configurations": ["0"], "times": [1]}',
    ],
)
def test_other_files_are_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "bad.json"
    path.write_text(text)
    with pytest.raises(TuneError) as caught:
        read_space(path)
    assert caught.value.code == "space.file"


def test_broken_compression_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bad.json.gz"
    for raw in (gzip.compress(b"{}" * 100)[:-9], b"\x1f\x8bxx", b"\xff\xfe\x00"):
        path.write_bytes(raw)
        with pytest.raises(TuneError):
            read_space(path)
