from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from tilewright.tune.measure.cluster.job_bundle import pack, unpack
from tilewright.tune.measure.job import Job


def written(folder: Path, *names: str) -> tuple[Path, ...]:
    paths = tuple(folder / name for name in names)
    for path in paths:
        path.write_bytes(path.name.encode())
    return paths


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_job_arrives_as_it_was(tmp_path: Path) -> None:
    task, elsewhere = tmp_path / "task", tmp_path / "elsewhere"
    task.mkdir()
    (task / "folder").mkdir()
    written(task, "task.graph")
    inputs, outputs = written(task, "input.0.npy", "input.1.npy"), written(tmp_path, "out.npy")
    job = Job(task, "target", inputs, outputs, 3, True, {"f32": float("inf")})
    bundle = pack(job)
    assert json.loads(json.dumps({**bundle, "files": None})) == {**bundle, "files": None}
    arrived = unpack(bundle, elsewhere)
    there = (elsewhere / "input.0.npy", elsewhere / "input.1.npy")
    assert arrived == replace(
        job, workload=elsewhere, inputs=there, expected=(elsewhere / "out.npy",)
    )
    names = {"task.graph", "input.0.npy", "input.1.npy", "out.npy"}
    assert contents(elsewhere) == {name: name.encode() for name in names}


def test_models_travel_instead_of_the_workload(tmp_path: Path) -> None:
    written(tmp_path, "task.graph", "other.tw")
    models = written(tmp_path, "a.tw", "b.tw")
    job = Job(tmp_path, "", written(tmp_path, "in.npy"), ())
    assert pack(job, models)["files"].keys() == {"a.tw", "b.tw", "in.npy"}
