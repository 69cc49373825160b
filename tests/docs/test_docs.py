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


def _checked(*pages: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(DOCS / "scripts" / "blocks.py"), "--check", *map(str, pages)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_examples_print_what_the_pages_show() -> None:
    done = _checked(*generate.examples())
    assert done.returncode == 0, done.stderr


def test_every_page_that_prints_something_else_is_named(tmp_path: Path) -> None:
    pages = {"old": "print(1)", "broken": "1 / 0", "right": "print(2)", "apart": "print(x)"}
    for name, code in pages.items():
        (tmp_path / name).write_text(
            f"```python\nx = 2\n```\n```python\n{code}\n```\n\n```text\n2\n```\n"
        )
    (tmp_path / "other").write_text("```python\nprint(x)\n```\n")
    done = _checked(*(tmp_path / name for name in (*pages, "other")))
    assert done.returncode == 1
    assert "old is not up to date" in done.stderr
    assert "ZeroDivisionError" in done.stderr
    failed = ", ".join(str(tmp_path / name) for name in ("old", "broken", "other"))
    assert done.stderr.splitlines()[-1] == f"failed: {failed}"


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
