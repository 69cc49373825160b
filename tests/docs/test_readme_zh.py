"""The Chinese README has the sections, commands, links and figures of the English one."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
ENGLISH = (ROOT / "README.md").read_text()
CHINESE = (ROOT / "README.zh-CN.md").read_text()


def _prose(page: str) -> str:
    return re.sub(r"^```.*?^```$", "", page, flags=re.DOTALL | re.MULTILINE)


def _headings(page: str) -> list[int]:
    return [len(marks) for marks in re.findall(r"^(#+) ", _prose(page), re.MULTILINE)]


def _blocks(page: str) -> list[str]:
    return re.findall(r"^```.*?^```$", page, re.DOTALL | re.MULTILINE)


def _links(page: str) -> list[str]:
    """Where links lead, in order, less the one to the other README."""
    return [link for link in re.findall(r"\]\(([^)]+)\)", page) if not link.startswith("README")]


def _inline(page: str) -> list[str]:
    return sorted(re.findall(r"`([^`\n]+)`", _prose(page)))


def test_sections() -> None:
    assert _headings(CHINESE) == _headings(ENGLISH)
    assert len(_headings(ENGLISH)) >= 5


def test_commands_and_code() -> None:
    assert _blocks(CHINESE) == _blocks(ENGLISH)
    assert _inline(CHINESE) == _inline(ENGLISH)


def test_links() -> None:
    assert _links(CHINESE) == _links(ENGLISH)


def test_items_of_lists() -> None:
    count = [len(re.findall(r"^- ", page, re.MULTILINE)) for page in (CHINESE, ENGLISH)]
    assert count[0] == count[1] > 0


def test_each_leads_to_the_other() -> None:
    assert "(README.zh-CN.md)" in ENGLISH
    assert "(README.md)" in CHINESE
