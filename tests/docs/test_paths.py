"""Files that a page names exist, and each record of the log has a date, a commit and an entry."""

from __future__ import annotations

import re
from pathlib import Path

from tests.for_each import for_each

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
# Records of the log and results keep the names of their day.
PAGES = [
    ROOT / "README.md",
    *(
        path
        for path in sorted(DOCS.rglob("*.md"))
        if path.relative_to(DOCS).parts[0] not in ("log", "results", "reference")
    ),
]
_PATH = re.compile(r"`((?:[a-z_]+/)+[a-z_0-9]+\.py)`")


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def named_files(text: str) -> set[str]:
    """The Python files that a page names, by their path from the root or from `tilewright/`."""
    return set(_PATH.findall(text))


def test_a_path_is_found_and_a_placeholder_is_not() -> None:
    text = "See `passes/fuse.py` and `tests/ops/<folder>/test_<family>.py`, not `fuse.py`."
    assert named_files(text) == {"passes/fuse.py"}


@for_each("path", PAGES, ids=_name)
def test_named_files_exist(path: Path) -> None:
    found = named_files(path.read_text())
    missing = [
        f for f in found if not (ROOT / f).exists() and not (ROOT / "tilewright" / f).exists()
    ]
    assert not missing


def test_the_log_lists_every_record_with_its_date() -> None:
    records = {p.name for p in (DOCS / "log").glob("*.md")} - {"README.md"}
    listed = re.findall(
        r"^\| (\d{4}-\d\d-\d\d) \| \[.+?\]\((.+?)\) \|",
        (DOCS / "log" / "README.md").read_text(),
        re.M,
    )
    assert sorted(name for _, name in listed) == sorted(records)
    assert all(name.startswith(f"{date}-") for date, name in listed)
    commit = re.compile(r"\bcommit [0-9a-f]{8,}\b")
    assert not [name for name in records if not commit.search((DOCS / "log" / name).read_text())]


def test_every_chapter_is_listed() -> None:
    chapters = {p.name for p in (DOCS / "design").glob("*.md")} - {"README.md"}
    assert set(re.findall(r"\]\((.+?)\)", (DOCS / "design" / "README.md").read_text())) >= chapters
