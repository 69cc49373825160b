"""The changes that the guides show apply to the tree as it is, and do what the guides say.

Each page has one `diff` block and, behind it, a `console` block. The diff is applied to a copy of
the package, and the commands are run there.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.for_each import for_each

ROOT = Path(__file__).parents[2]
GUIDES = ("operator", "pass", "primitive", "strategy", "target")
_CHANGE = re.compile(
    r"^```diff\n(?P<diff>.*?)^```\n.*?^```console\n(?P<console>.*?)^```\n", re.DOTALL | re.MULTILINE
)


def page(kind: str) -> Path:
    """The guide to adding one."""
    return ROOT / "docs" / "howto" / f"add-{'an' if kind[0] in 'aeiou' else 'a'}-{kind}.md"


def change(kind: str) -> tuple[str, list[str]]:
    """The diff of a guide and the commands that check it."""
    found = _CHANGE.search(page(kind).read_text())
    assert found is not None, f"{page(kind).name} has no diff with commands behind it"
    commands = re.findall(r"^\$ (.+?)(?: +#.*)?$", found["console"], re.MULTILINE)
    return found["diff"], commands


def new_files(diff: str) -> list[str]:
    """The files that a diff adds."""
    return re.findall(r"^--- /dev/null\n\+\+\+ b/(.+)$", diff, re.MULTILINE)


def table_lines(diff: str) -> int:
    """How many lines a diff adds to files that were there before."""
    parts = re.split(r"^diff --git .*\n", diff, flags=re.MULTILINE)
    old = [part for part in parts if part and "--- /dev/null" not in part]
    return sum(len(re.findall(r"^\+(?!\+\+ )", part, re.MULTILINE)) for part in old)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of what a change touches."""
    left_out = shutil.ignore_patterns("golden", "docs")  # bytecode stays: dates are copied
    for folder in ("tilewright", "tests"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=left_out)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


@for_each("kind", GUIDES)
def test_a_change_is_one_module_its_test_and_few_lines_in_tables(kind: str) -> None:
    diff, commands = change(kind)
    added = new_files(diff)
    assert len([f for f in added if f.startswith("tilewright/")]) == 1
    assert len([f for f in added if f.startswith("tests/")]) == len(added) - 1 <= 1
    assert 1 <= table_lines(diff) <= 5  # an import or a method besides
    assert commands


@pytest.mark.parametrize("kind", GUIDES)
def test_the_change_applies_and_its_commands_succeed(kind: str, copy: Path) -> None:
    diff, commands = change(kind)
    applied = subprocess.run(
        ["git", "apply", "-"], cwd=copy, input=diff, capture_output=True, text=True, check=False
    )
    assert applied.returncode == 0, f"{applied.stderr}\nmake the diff of {page(kind).name} anew"
    assert all((copy / file).is_file() for file in new_files(diff))
    programs = copy / "bin"
    programs.mkdir()
    for name in ("pytest", "tilewright"):
        file = programs / name
        file.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m {name} "$@"\n')
        file.chmod(0o755)
    environment = {
        **os.environ,
        "PATH": f"{programs}:{os.environ['PATH']}",
        "PYTHONPATH": str(copy),
        "TW_CACHE_DIR": str(copy / "cache"),
    }
    for command in commands:
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", command],
            cwd=copy,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"$ {command}\n{done.stdout}\n{done.stderr}"
