"""Write `docs/reference` and `docs/methods.md` from the tables in the code, refresh the examples.

make docs
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from tilewright.cli.catalog import CATALOG, Row
from tilewright.cli.error_codes import error_classes
from tilewright.methods.method import MethodResult, MethodSection, PublishedMethod
from tilewright.methods.table import METHODS, SECTIONS

DOCS = Path(__file__).resolve().parents[1]
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
    "recorded-spaces": "Recorded spaces",
    "schedule-spaces": "Spaces of schedules",
}
INTRODUCTIONS = {
    "ops": "What a graph is made of. `kind` says how one fuses: see `tilewright/ops/op.py`.",
    "onnx": "Operators with a converter of their own; those that ONNX defines by others need none. "
    "`native` is compiled; `host` runs as a Python function between native segments, because no "
    "loop program can express it; with both, the host has what concerns texts.",
    "passes": "In the order in which they first run. `cpu` and `gpu` give the positions of a "
    "pass in the lists of `tilewright/driver/pipeline.py`.",
    "primitives": "The steps of a schedule. The module of each shows the program before and after.",
    "targets": "Names for `tw.compile(..., target=...)` and `--target`.",
    "switches": "Environment variables, all read in `tilewright/core/config.py`.",
    "errors": "Every error has a class, a code and mostly a help. `{...}` is filled in.",
    "strategies": "Names for `tilewright lab --strategies`; `model`: whether one uses a cost "
    "model.",
    "cost-models": "Names for `tilewright lab --cost-models`.",
    "task-schedulers": "Which of several tasks gets the next trials.",
    "schedule-spaces": "Names for `tilewright tune --space`.",
    "recorded-spaces": "Spaces whose every configuration was measured, for `tilewright lab "
    "--space`. Where they come from and under which licence is in `tilewright/tune/space/data`.",
}
METHODS_INTRODUCTION = (
    "Published systems, papers and classic techniques of deep-learning compilers: the idea, how "
    "much of it is built here, where, the experiment that shows it, and what that last gave. "
    "The table is `tilewright/methods`; `tilewright list methods` prints it. Tests check that all "
    "files and commands exist and that every figure stands in the source it is quoted from."
)
NOTE = "<!-- Written by docs/scripts/generate.py; run `make docs` instead of editing. -->"


def page(kind: str) -> str:
    """The reference page of one table."""
    parts = [f"# {TITLES[kind]}", NOTE, INTRODUCTIONS[kind]]
    if kind == "errors":
        parts.append(table(("class", "meaning"), [(f"`{n}`", doc) for n, doc in error_classes()]))
    parts.append(row_table(rows(kind)))
    return "\n\n".join(parts) + "\n"


def methods_page() -> str:
    """The page of published methods."""
    states = ("built", "partly", "not built")
    counts = [
        (s.title, *(str(sum(m.state == state for m in s.methods)) for state in states))
        for s in SECTIONS
    ]
    total = ("all", *(str(sum(m.state == state for m in METHODS)) for state in states))
    parts = ["# Methods", NOTE, METHODS_INTRODUCTION, table(("", *states), [*counts, total])]
    return "\n\n".join([*parts, *map(_section, SECTIONS)]) + "\n"


def _section(section: MethodSection) -> str:
    """What is there, method by method, then what is not."""
    there = [_entry(m) for m in section.methods if m.state != "not built"]
    absent = [(m.name, m.published, m.idea) for m in section.methods if m.state == "not built"]
    parts = [f"## {section.title}", section.about, *there]
    if absent:
        parts.append(f"### {section.title}: not built yet")
        parts.append(table(("method", "published", "idea"), absent))
    return "\n\n".join(parts)


def _entry(m: PublishedMethod) -> str:
    facts = {
        "State": m.state,
        "Missing": m.missing,
        "Published": m.published,
        "Files": ", ".join(f"`{file}`" for file in m.files),
        "Experiment": f"`{m.command}`",
        "Last result": _result(m.result),
    }
    lines = [f"- {key}: {value}" for key, value in facts.items() if value]
    return "\n\n".join([f"### {m.name}", m.idea, "\n".join(lines)])


def _result(result: MethodResult | None) -> str:
    if result is None:
        return "no figure kept"
    inside = result.source.startswith("docs/")
    name = f"`{result.source}`"
    source = f"[{name}]({result.source.removeprefix('docs/')})" if inside else name
    return f"{result.text} ({source})"


def rows(kind: str) -> list[Row]:
    """The rows of a table, the same on every machine."""
    found = CATALOG[kind]()
    if kind == "targets":
        of_this_machine = {
            "native": "this machine; `tilewright doctor` describes it",
            "cuda": "the GPU of this machine, or `-arch=sm_90a` where there is none",
        }
        for row in found:
            row["summary"] = of_this_machine.get(row["name"], row["summary"])
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
    """The pages that have Python blocks, which are run."""
    pages = (ROOT / "README.md", *sorted(DOCS.rglob("*.md")))
    return [page for page in pages if "\n```python\n" in page.read_text()]


def main() -> None:
    """Write all pages."""
    for kind in TITLES:
        (DOCS / "reference" / f"{kind}.md").write_text(page(kind))
    (DOCS / "methods.md").write_text(methods_page())
    command = [sys.executable, str(DOCS / "scripts" / "blocks.py"), *map(str, examples())]
    subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
