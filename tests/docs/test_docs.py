"""The pages say what is: examples print what they show, the reference is that of the code."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.for_each import for_each

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


def _load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"docs_{name}", DOCS / "scripts" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


generate = _load("generate")
blocks = _load("blocks")
PAGES = [*sorted(ROOT.glob("*.md")), *sorted(DOCS.rglob("*.md"))]


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("path", generate.examples(), ids=_name)
def test_examples_print_what_the_page_shows(path: Path) -> None:
    command = [sys.executable, str(DOCS / "scripts" / "blocks.py"), "--check", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@for_each("path", PAGES, ids=_name)
def test_no_example_is_overlooked(path: Path) -> None:
    text = path.read_text()
    assert text.count("```python") == len(blocks._BLOCK.findall(text))


@pytest.mark.parametrize("kind", generate.TITLES)
def test_reference_is_up_to_date(kind: str) -> None:
    path = DOCS / "reference" / f"{kind}.md"
    assert path.read_text() == generate.page(kind), "run `make docs`"


def test_page_of_methods_is_up_to_date() -> None:
    assert (DOCS / "methods.md").read_text() == generate.methods_page(), "run `make docs`"


@for_each("path", PAGES, ids=_name)
def test_links_lead_somewhere(path: Path) -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", path.read_text())
    assert not [link for link in links if not (path.parent / link).exists()]


def test_blocks_share_names_and_show_output() -> None:
    page = "```python\nx = 1\n```\n\n```python\nprint(x + 1)\n```\n\n```text\n```\n"
    assert blocks.refreshed(page, "page").endswith("```text\n2\n```\n")
    assert blocks.refreshed(blocks.refreshed(page, "page"), "page") == blocks.refreshed(
        page, "page"
    )
