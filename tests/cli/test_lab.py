from __future__ import annotations

from pathlib import Path

from tests.cli.invoke import fail, succeed, succeed_json
from tilewright.tune.space.table import DATA

QUICK = ("--seeds", 2, "--trials", 32, "--cost-models", "ridge", "--space", "convolution-a100")


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
