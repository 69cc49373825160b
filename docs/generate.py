"""Write the pages of `docs/reference` from the tables in the code, and refresh what examples print.

make docs
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from tilewright.cli.catalog import CATALOG, Row
from tilewright.cli.error_codes import error_classes

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent

TITLES = {
    "ops": "Operators",
    "onnx": "ONNX operators",
    "passes": "Graph passes",
    "primitives": "Schedule primitives",
    "targets": "Targets",
    "switches": "Switches",
    "errors": "Errors",
    "strategies": "Search strategies",
    "cost-models": "Cost models",
    "task-schedulers": "Task schedulers",
    "spaces": "Measured spaces",
    "schedule-spaces": "Spaces of schedules",
}
INTRODUCTIONS = {
    "ops": "What a graph is made of. `kind` says how one fuses: see `tilewright/ops/row.py`.",
    "onnx": "Operators with a converter of their own; those that ONNX defines by others need none. "
    "`native` is compiled; `host` runs as a Python function between native stages, because no loop "
    "program can express it; with both, the host has what concerns texts.",
    "passes": "In the order in which they first run; `runs` is how often the pipeline runs each.",
    "primitives": "The steps of a schedule. The module of each shows the program before and after.",
    "targets": "Names for `tw.compile(..., target=...)` and `--target`.",
    "switches": "Environment variables, all read in `tilewright/core/config.py`.",
    "errors": "Every error has a class, a code and mostly a help. `{...}` is filled in.",
    "strategies": "Names for `tilewright lab --strategies`; `model`: whether one uses a cost "
    "model.",
    "cost-models": "Names for `tilewright lab --cost-models`.",
    "task-schedulers": "Which of several tasks gets the next trials.",
    "schedule-spaces": "Names for `tilewright tune --space`.",
    "spaces": "Spaces whose every configuration was measured, for `tilewright lab --space`. Where "
    "they come from and under which licence is in `tilewright/tune/space/data`.",
}
NOTE = "<!-- Written by docs/generate.py; run `make docs` instead of editing. -->"


def page(kind: str) -> str:
    """The reference page of one table."""
    parts = [f"# {TITLES[kind]}", NOTE, INTRODUCTIONS[kind]]
    if kind == "errors":
        parts.append(table(("class", "meaning"), [(f"`{n}`", doc) for n, doc in error_classes()]))
    parts.append(row_table(rows(kind)))
    return "\n\n".join(parts) + "\n"


def rows(kind: str) -> list[Row]:
    """The rows of a table, the same on every machine."""
    found = CATALOG[kind]()
    if kind == "targets":
        found[0]["summary"] = "this machine; `tilewright doctor` describes it"
    return found


def row_table(found: Sequence[Row]) -> str:
    """Rows as Markdown: the name first, what it is last."""
    keys = [k for k in found[0] if k not in ("summary", "help")]
    keys += [k for k in ("summary", "help") if k in found[0]]
    return table(keys, [[_cell(k, row[k]) for k in keys] for row in found])


def _cell(key: str, text: str) -> str:
    prose = key in ("summary", "help", "kind", "runs", "class", "model")
    return text.replace("<", "&lt;") if prose or not text else f"`{text}`"


def table(heads: Sequence[str], cells: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [heads, ["---"] * len(heads), *cells]
    return "\n".join(
        f"| {' | '.join(c.replace('|', chr(92) + '|') for c in row)} |" for row in lines
    )


def examples() -> list[Path]:
    """The pages whose Python blocks are run."""
    return [
        ROOT / "README.md",
        *sorted(p for p in DOCS.rglob("*.md") if p.parent.name != "reference"),
    ]


def main() -> None:
    """Write all pages."""
    for kind in TITLES:
        (DOCS / "reference" / f"{kind}.md").write_text(page(kind))
    for path in examples():
        subprocess.run([sys.executable, str(DOCS / "blocks.py"), str(path)], check=True)


if __name__ == "__main__":
    main()
