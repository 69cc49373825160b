"""Figures in documents: what stands between two marks of a page comes from a results file.

    <!-- figures: index-checks -->
    | model | ...
    <!-- /figures -->

    python benchmarks/figures.py            # write all of them anew
    python benchmarks/figures.py --check    # say which pages are not up to date

A mark names a row of `FIGURES`; marks may also stand within a line, not at its start, where
Markdown takes them for a paragraph. A name that is not there is an error, and so is a mark without
its end. Each results file names machine, date and commit of its figures (`results_file.py`), and
every text says them.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import figure_tables
import sweep_tables
from readme import speed

ROOT = Path(__file__).resolve().parents[1]
FIGURES: dict[str, Callable[[], str]] = {
    "readme": partial(speed, "readme"),
    "readme-zh-CN": partial(speed, "readme-zh-CN"),
    "bf16": figure_tables.bf16,
    "compile": figure_tables.compile_cost,
    "conformance": figure_tables.conformance,
    "cpu-sweep": sweep_tables.cpu_sweep,
    "gpu-calls": figure_tables.gpu_calls,
    "gpu-sweep": sweep_tables.gpu_sweep,
    "index-checks": figure_tables.index_checks,
    "metaschedule": figure_tables.metaschedule,
    "mlp-memory": figure_tables.mlp_memory,
    "recurrent": figure_tables.recurrent,
    "recurrent-before": figure_tables.recurrent_before,
    "revisions": figure_tables.revisions,
    "revisions-again": figure_tables.revisions_again,
    "tuned-models": figure_tables.tuned_models,
}
_MARKED = re.compile(
    r"(?P<begin><!-- figures: (?P<name>\S+) -->)(?P<text>.*?)(?P<end><!-- /figures -->)", re.DOTALL
)
_MARK = re.compile(r"<!-- /?figures\b.*?-->")


class UnknownFigures(Exception):
    """A page has a mark that no table answers."""


def pages() -> list[Path]:
    """The documents that may have figures."""
    return [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]


def names(page: str) -> list[str]:
    """The figures that a page has marks for."""
    found = [marked["name"] for marked in _MARKED.finditer(page)]
    if len(_MARK.findall(page)) != 2 * len(found):
        raise UnknownFigures("a mark without its counterpart, or without a name")
    unknown = [name for name in found if name not in FIGURES]
    if unknown:
        raise UnknownFigures(f"no figures {', '.join(unknown)}; there are {', '.join(FIGURES)}")
    return found


def rendered(page: str) -> str:
    """The page with the figures of today's results files."""
    names(page)

    def fresh(marked: re.Match[str]) -> str:
        text = FIGURES[marked["name"]]()
        block = f"\n{text}\n" if marked["text"].startswith("\n") else text
        return f"{marked['begin']}{block}{marked['end']}"

    return _MARKED.sub(fresh, page)


def main() -> None:
    """Write or check all pages."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing")
    args = parser.parse_args()
    for path in pages():
        old = path.read_text()
        try:
            new = rendered(old)
        except UnknownFigures as error:
            sys.exit(f"{path.relative_to(ROOT)}: {error}")
        if new == old:
            continue
        if args.check:
            sys.exit(f"{path.relative_to(ROOT)} is not up to date: run benchmarks/figures.py")
        path.write_text(new)


if __name__ == "__main__":
    main()
