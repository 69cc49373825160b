from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.invoke import fail, succeed, succeed_json
from tests.tune.benchmark.programs import files
from tilewright.tune.space.table import DATA

QUICK = ("--seeds", 2, "--trials", 32, "--cost-models", "ridge", "--space", "convolution-a100")


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Options for two measured spaces of programs."""
    paths = files(tmp_path_factory.mktemp("spaces"), (24, 48))
    return [word for path in paths for word in ("--space", path)]


def _without_wall(rows: list) -> list:
    for row in rows:
        row.pop("wall_seconds")
        for run in row["runs"]:
            run.pop("wall_seconds")
    return rows


def test_leaderboard_and_curves(tmp_path: Path) -> None:
    page = tmp_path / "curves.html"
    text = succeed("lab", *QUICK, "--html", page)
    for name in ("random", "genetic", "annealing+ridge", "evolutionary+ridge", "t95", "regret@64"):
        assert name in text
    assert page.read_text().count("<polyline") == 4


def test_json_is_the_same_for_the_same_seed() -> None:
    first = _without_wall(succeed_json("lab", *QUICK, "--strategies", "random,evolutionary"))
    again = _without_wall(succeed_json("lab", *QUICK, "--strategies", "random,evolutionary"))
    assert first == again
    assert {row["strategy"] for row in first} == {"random", "evolutionary"}
    assert all(len(run["best"]) == 32 for row in first for run in row["runs"])


def test_a_file_is_a_space_too(tmp_path: Path) -> None:
    path = tmp_path / "own.json"
    path.write_bytes((DATA / "dedispersion-a4000.json").read_bytes())
    rows = succeed_json("lab", "--space", path, "--strategies", "grid", "--seeds", 1)
    assert rows[0]["space"] == str(path)


def test_mistakes() -> None:
    assert "did you mean 'genetic'" in fail(
        "lab", "--strategies", "genetics", "--cost-models", "ridge", code="registry.unknown"
    )
    fail("lab", "--space", "nowhere", "--cost-models", "ridge", code="space.unknown")


def test_accuracy(programs: list[str]) -> None:
    rows = succeed_json("lab", "accuracy", *programs, "--train", 24, "--seeds", 2)
    assert len(rows) == 8
    assert all(row["within"] > 0.3 for row in rows if row["cost_model"] != "random")
    assert "across" in succeed("lab", "accuracy", *programs[:2], "--cost-models", "analytical")


def test_a_model_in_a_file_takes_part(programs: list[str], tmp_path: Path) -> None:
    file = tmp_path / "model.txt"
    assert "52 programs of 1 tasks" in succeed("lab", "pretrain", file, *programs[:2])
    quick = ("--trials", 8, "--batch", 4, "--seeds", 1, "--strategies", "annealing")
    models = ("--cost-models", f"pretrained:{file},analytical")
    rows = succeed_json("lab", *programs[2:], *quick, *models)
    assert {row["cost_model"] for row in rows} == {f"pretrained:{file}", "analytical"}


def test_transfer(programs: list[str], tmp_path: Path) -> None:
    page = tmp_path / "curves.html"
    quick = ("--trials", 8, "--batch", 4, "--seeds", 1, "--html", page)
    text = succeed("lab", "transfer", *programs, *quick)
    assert "evolutionary+pretrained" in text
    assert "relative to those without" in text
    assert page.read_text().count("<polyline") == 4
    assert len(succeed_json("lab", "transfer", *programs, *quick)) == 4


def test_tasks(programs: list[str]) -> None:
    weighted = [*programs[:3], f"{programs[3]}=4"]
    quick = ("--trials", 16, "--batch", 4, "--seeds", 2, "--strategy", "random")
    rows = succeed_json("lab", "tasks", *weighted, *quick)
    assert {row["task_scheduler"] for row in rows} == {"gradient", "round-robin"}
    assert "random, gradient" in succeed("lab", "tasks", *weighted, *quick)
    fail("lab", "tasks", "--space", f"{programs[1]}=many", *quick, code="lab.weight")
    fail("lab", "tasks", *weighted, "--task-schedulers", "turns", code="registry.unknown")


def test_programs_are_needed_where_one_teaches_another() -> None:
    fail("lab", "transfer", "--space", "convolution-a100", code="lab.too-few")
    fail("lab", "accuracy", "--space", "convolution-a100", code="lab.no-programs")
    quick = ("--strategies", "evolutionary", "--cost-models", "analytical", "--seeds", 1)
    fail("lab", "--space", "convolution-a100", *quick, code="cost.features")
