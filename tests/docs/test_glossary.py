"""The glossary is sorted, names each term once, and every file where a term lives exists."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "glossary.md").read_text()
ROWS = re.findall(r"^\| (.+?) \| (.+) \| `(.+?)` \|$", PAGE, re.MULTILINE)


def test_every_line_of_the_table_is_a_row() -> None:
    assert PAGE.count("\n| ") == len(ROWS) + 1  # and its head
    assert len(ROWS) >= 80


def test_terms_are_sorted_and_unique() -> None:
    terms = [term.lower() for term, _, _ in ROWS]
    assert terms == sorted(set(terms))


def test_each_is_one_sentence() -> None:
    wrong = [term for term, text, _ in ROWS if not text.endswith(".") or ". " in text]
    assert not wrong


def test_files_exist() -> None:
    missing = [
        file
        for _, _, file in ROWS
        if not any((r / file).is_file() for r in (ROOT, ROOT / "tilewright"))
    ]
    assert not missing
