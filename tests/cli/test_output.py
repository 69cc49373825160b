from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.for_each import for_each
from tilewright.cli.output import print_json, print_table, progress, size_text


def test_json_is_strict(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"a": [1.5, float("nan"), float("inf")], "p": Path("x"), "t": (True, None)})
    assert json.loads(capsys.readouterr().out) == {
        "a": [1.5, None, None],
        "p": "x",
        "t": [True, None],
    }


def test_a_table_in_a_file_is_not_cut(capsys: pytest.CaptureFixture[str]) -> None:
    long = "x" * 150
    print_table(["name", "number"], [[long, 1.23456], ["[bold]y[/bold]", 2]])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split() for line in (lines[0], *lines[2:])] == [
        ["name", "number"],
        [long, "1.235"],
        ["[bold]y[/bold]", "2"],
    ]
    assert lines[3].endswith("    2")


def test_an_empty_table(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(["name"], [])
    assert "name" in capsys.readouterr().out


def test_progress_is_silent_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with progress() as show:
        show("working")
    assert capsys.readouterr() == ("", "")


@for_each(
    ("count", "text"),
    [(0, "0 B"), (999, "999 B"), (1500, "1.5 kB"), (2e6, "2.0 MB"), (3e12, "3000.0 GB")],
)
def test_sizes(count: float, text: str) -> None:
    assert size_text(count) == text
