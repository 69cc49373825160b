"""The site has every page, and the hooks before a commit run what `make lint` runs."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
SITE = (ROOT / "mkdocs.yml").read_text()
HOOKS = (ROOT / ".pre-commit-config.yaml").read_text()


def test_every_page_is_in_the_navigation_once() -> None:
    listed = re.findall(r"^ +- (?:.+: )?(\S+\.md)$", SITE, re.MULTILINE)
    assert sorted(listed) == sorted(p.relative_to(DOCS).as_posix() for p in DOCS.rglob("*.md"))


def test_hooks_run_what_lint_runs() -> None:
    makefile = (ROOT / "Makefile").read_text()
    parts = re.findall(r"^(?:types|style):.*\n((?:\t.+\n)+)", makefile, re.MULTILINE)
    assert "\nlint: types style\n" in makefile
    commands = re.findall(r"\$\(BIN\)/(.+)", "".join(parts))
    entries = re.findall(r"entry: \.venv/bin/(.+)", HOOKS)
    assert sorted(entries) == sorted(command.removesuffix(" .") for command in commands)
